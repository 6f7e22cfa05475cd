"""Inference threads and an event loop that hang or die in a running service."""

from __future__ import annotations

import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import httpx
import pytest

from deploy.faults.faulty_service import LOOP_HANG_S
from tests.end_to_end.faulty_service import Faulty, faulty
from tests.end_to_end.test_serving import ads
from tests.waiting import until

DEADLINE_S = 30


def quick(bundle: Path, folder: Path, *arguments: str) -> AbstractContextManager[Faulty]:
    """A service that soon takes a run for stuck."""
    return faulty(bundle, folder, "--watchdog-s", "0.5", *arguments)


def test_a_run_that_raises_fails_its_own_batch_and_the_next_one_is_scored(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with quick(tiny_bundle_int8, tmp_path) as broken:
        broken.break_it("fail")
        assert broken.code() == "inference_failed"
        assert broken.status("/livez") == broken.status("/readyz") == 200
        broken.mend()
        assert broken.code() == "ok"
        assert broken.service.metric("adrel_batch_failures_total") == 1


def test_batches_that_memory_does_not_suffice_for_are_run_in_smaller_parts(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    body = {"query": "red", "ads": ads(*[f"{word} shoe" for word in "abcdefgh"])}
    with quick(tiny_bundle_int8, tmp_path, "--inference-threads", "1") as broken:
        sound = broken.service.score(body).json()["scores"]
        full_tokens = broken.service.metric("adrel_batch_token_budget")
        broken.break_it("memory 12")
        for _ in range(2):
            assert broken.service.score(body).json()["scores"] == sound
        assert broken.service.metric("adrel_batch_splits_total") > 0
        assert broken.service.metric("adrel_batch_token_budget") <= 12 < full_tokens
        assert broken.service.metric("adrel_batch_failures_total") == 0
        assert broken.messages().count("out of memory; batches are smaller") == 1


def test_one_thread_that_hangs_fails_its_callers_and_the_other_one_goes_on(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with (
        quick(tiny_bundle_int8, tmp_path, "--inference-threads", "2") as broken,
        ThreadPoolExecutor(2) as executor,
    ):
        broken.break_it("hang-first")
        auction = executor.submit(broken.code, "blue", timeout_ms=60_000)
        bulk = executor.submit(broken.code, "blue", timeout_ms=60_000, priority="batch")
        assert auction.result(DEADLINE_S) == bulk.result(DEADLINE_S) == "inference_failed"
        assert broken.code("bag") == "ok"
        answer = broken.service.client.get("/livez")
        assert answer.status_code == 503
        assert "1 of 2 inference threads are stuck" in answer.text
        assert broken.status("/readyz") == 200
        assert broken.service.metric("adrel_stuck_workers") == 1
        assert any("batch of 1 pairs failed" in message for message in broken.messages())
        broken.mend()
        until(lambda: broken.status("/livez") == 200)
        assert broken.service.metric("adrel_stuck_workers") == 0
        assert broken.code("blue") == "ok"
        broken.service.process.send_signal(signal.SIGTERM)
        assert broken.service.process.wait(DEADLINE_S) == 0


@pytest.mark.parametrize("fault", ["hang", "die"])
def test_with_no_thread_left_callers_are_sent_away_and_a_stop_is_not_held_up(
    fault: str, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with quick(tiny_bundle_int8, tmp_path, "--inference-threads", "1") as broken:
        broken.break_it(fault)
        with ThreadPoolExecutor(2) as executor:
            stuck = executor.submit(broken.code, "blue", timeout_ms=60_000)
            broken.service.reaches("adrel_batches_in_flight", lambda running: running == 1)
            waiting = executor.submit(broken.code, "bag", timeout_ms=60_000, priority="batch")
            assert stuck.result(DEADLINE_S) == "inference_failed"
            assert waiting.result(DEADLINE_S) == "not_ready"
        assert broken.status("/readyz") == broken.status("/livez") == 503
        assert broken.code("shoe") == "not_ready"
        asked_s = time.monotonic()
        broken.service.process.send_signal(signal.SIGTERM)
        assert broken.service.process.wait(DEADLINE_S) == 0
        assert time.monotonic() - asked_s < 5
        until(lambda: "a batch never ended; leaving without it" in broken.messages())


def test_a_process_that_stood_still_is_not_taken_for_a_stuck_one(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with (
        quick(tiny_bundle_int8, tmp_path, "--watchdog-s", "1.5") as broken,
        ThreadPoolExecutor(1) as executor,
    ):
        broken.break_it("hang")
        answer = executor.submit(broken.code, timeout_ms=60_000)
        broken.service.reaches("adrel_batches_in_flight", lambda running: running == 1)
        broken.service.process.send_signal(signal.SIGSTOP)
        time.sleep(2)  # the fault itself: so long nothing runs
        broken.mend()
        broken.service.process.send_signal(signal.SIGCONT)
        assert answer.result(DEADLINE_S) == "ok"
        assert broken.status("/livez") == 200
        assert not [entry for entry in broken.service.log if entry["level"] == "error"]


def test_an_event_loop_that_stands_still_leaves_the_stacks_of_all_threads_in_the_log(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with quick(tiny_bundle_int8, tmp_path) as broken:
        assert broken.code() == "ok"
        broken.service.process.send_signal(signal.SIGUSR1)
        with pytest.raises(httpx.TimeoutException):
            broken.service.client.get("/livez", timeout=LOOP_HANG_S / 3)
        until(lambda: "the event loop turns again" in broken.messages())
        (entry,) = [one for one in broken.service.log if "stands still" in one["message"]]
        threads = {name.partition(" ")[0]: frames for name, frames in entry["stacks"].items()}
        assert any("faulty_service.py" in frame for frame in threads["MainThread"])
        assert "inference_0" in threads
        assert broken.status("/livez") == 200


def test_native_code_that_keeps_the_interpreters_lock_is_caught_without_it(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with quick(tiny_bundle_int8, tmp_path) as broken:
        broken.service.process.send_signal(signal.SIGUSR2)
        until(lambda: any("most recent call first" in one for one in broken.service.plain_lines))
        assert broken.status("/livez") == 200
        broken.service.process.send_signal(signal.SIGTERM)
        assert broken.service.process.wait(DEADLINE_S) == 0
