"""The supervisor with processes of its own that do nothing but what a worker tells it."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import pytest

from service.settings import Settings
from service.startup_errors import InvalidSetting
from service.workers import supervisor, worker_process
from service.workers.core_sets import CoreShare
from service.workers.supervisor import CRASH_LOOP_EXIT_CODE, supervise

# As `link` writes it, without the seconds that importing ours takes.
LISTENING = """
import json, os, signal, socket, struct, sys, time
link = socket.socket(fileno=json.loads(sys.argv[1])["inherited"]["link"])
def tell(what):
    message = json.dumps({"tell": what, "about": None}).encode()
    link.sendall(struct.pack("!I", len(message)) + message)
tell("listening")
"""
DIES = LISTENING + "sys.exit(7)"
STOPS_ALL = LISTENING + "os.kill(os.getppid(), signal.SIGTERM); signal.pause()"


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Settings for two workers, on as many cores as that takes."""
    shares = [CoreShare((), 1), CoreShare((), 1)]
    monkeypatch.setattr(supervisor, "core_shares", lambda _: shares)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "manifest.json").touch()  # read by workers alone
    return Settings(workers=2, port=0, bundle=tmp_path)


def work_is(code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "COMMAND", (sys.executable, "-S", "-c", code))


def test_a_crash_loop_ends_the_service_with_a_message_and_a_code_of_its_own(
    two: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    work_is(DIES, monkeypatch)
    assert supervise(two, []) == CRASH_LOOP_EXIT_CODE
    (end,) = [one for one in caplog.records if one.message.startswith("workers do not stay up")]
    assert "ended 6 times in a row without serving for 30 s" in vars(end)["why"]
    assert "by exit code 7" in vars(end)["why"]


@pytest.mark.parametrize("end", ["sys.exit(1)", "os.kill(os.getpid(), 9)"])
def test_a_first_worker_that_cannot_start_ends_it_at_once(
    end: str, two: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = tmp_path / "started"
    work_is(f"import os, sys; open({str(started)!r}, 'a').write('x'); {end}", monkeypatch)
    assert supervise(two, []) == 1
    assert started.read_text() == "x"


def test_a_stop_signal_ends_all_workers_and_then_the_service_with_zero(
    two: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    work_is(STOPS_ALL, monkeypatch)
    assert supervise(two, []) == 0
    assert not list(tmp_path.glob("adrel-*"))


def test_more_workers_than_cores_are_refused() -> None:
    with pytest.raises(InvalidSetting, match="workers: is 4096, over the limit of"):
        supervise(Settings(workers=4096), [])
