from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from service.loop_watch import MOST_A_LOOK_S, PERIOD_S, LoopWatch, stacks
from tests.service.test_imports import ROOT

STUCK_S = 5.0


class Bench:
    """A watch whose looks are the test's."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.watch = LoopWatch(STUCK_S, lambda: self.now_s)

    def pass_time(self, seconds: float, *, beating: bool = False) -> None:
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += PERIOD_S
            if beating:
                self.watch.beat()
            self.watch.look()


def test_a_loop_that_turns_is_not_spoken_of(caplog: pytest.LogCaptureFixture) -> None:
    Bench().pass_time(10 * STUCK_S, beating=True)
    assert caplog.records == []


def test_a_loop_that_stands_still_is_told_of_once_with_all_stacks_and_again_when_it_turns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.pass_time(1, beating=True)
    bench.pass_time(STUCK_S - PERIOD_S)
    assert caplog.records == []
    with caplog.at_level(logging.WARNING):
        bench.pass_time(3 * STUCK_S)
        bench.pass_time(1, beating=True)
        bench.pass_time(2 * STUCK_S)
    levels = [record.levelname for record in caplog.records]
    assert levels == ["ERROR", "WARNING", "ERROR"]
    told = vars(caplog.records[0])
    assert told["for_s"] == STUCK_S
    assert any("pass_time" in frame for frames in told["stacks"].values() for frame in frames)


def test_time_in_which_the_whole_process_stood_still_does_not_count(
    caplog: pytest.LogCaptureFixture,
) -> None:
    bench = Bench()
    bench.pass_time(1, beating=True)
    bench.now_s += 3600
    bench.pass_time(STUCK_S - MOST_A_LOOK_S - PERIOD_S)
    assert caplog.records == []


def test_stacks_name_the_thread_and_the_place_and_no_values() -> None:
    query = "a query"
    (frames,) = [frames for name, frames in stacks().items() if name.startswith("MainThread")]
    assert frames[-2].endswith("test_stacks_name_the_thread_and_the_place_and_no_values")
    assert query not in str(frames)


@pytest.mark.parametrize(
    ("hang", "how"),
    [
        ("time.sleep(60)", "without a lock"),
        ("ctypes.PyDLL(None).sleep(60)", "with the interpreter's lock"),
    ],
)
def test_a_process_that_was_to_leave_and_hangs_ends_with_its_stacks(hang: str, how: str) -> None:
    code = (
        "import ctypes, time\n"
        "from service.loop_watch import LoopWatch\n"
        "watch = LoopWatch(30.0)\n"
        "watch.start()\n"
        "watch.leave_within(0.3)\n"
        f"{hang}\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert ended.returncode == 1, how
    assert "most recent call first" in ended.stderr
    assert '<string>", line 6' in ended.stderr


def test_a_watch_that_has_stopped_ends_nothing() -> None:
    code = (
        "import time\n"
        "from service.loop_watch import LoopWatch\n"
        "watch = LoopWatch(0.1)\n"
        "watch.start()\n"
        "watch.stop()\n"
        "time.sleep(0.5)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
