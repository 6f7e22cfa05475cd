from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from service import cpu


@pytest.mark.parametrize(
    ("quota", "period", "expected"),
    [("200000", "100000", 2.0), ("150000", "100000", 1.5), ("max", "100000", None),
     ("-1", "100000", None), ("", "", None)],
)  # fmt: skip
def test_a_quota_is_read_in_cores(quota: str, period: str, expected: float | None) -> None:
    assert cpu.quota_cores(quota, period) == expected


@pytest.mark.parametrize(
    ("affinity_cores", "quota", "expected"),
    [(8, None, 8), (8, 2.0, 2), (2, 4.0, 2), (8, 1.5, 1), (8, 0.5, 1)],
)
def test_the_tighter_limit_counts_in_whole_cores(
    affinity_cores: int, quota: float | None, expected: int
) -> None:
    assert cpu.core_count(affinity_cores, quota) == expected


def test_this_process_has_no_more_cores_than_its_affinity_mask() -> None:
    assert 1 <= cpu.usable_cores() <= len(os.sched_getaffinity(0))


def test_a_narrower_affinity_mask_is_obeyed() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpu.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has this scheduling class")
def test_a_thread_that_gives_way_changes_nothing_for_the_others() -> None:
    with ThreadPoolExecutor(1, initializer=cpu.give_way) as executor:
        assert executor.submit(os.sched_getscheduler, 0).result() == os.SCHED_IDLE
    assert os.sched_getscheduler(0) == os.SCHED_OTHER


def test_a_system_that_does_not_allow_it_is_no_reason_to_fail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    cpu.give_way()


def test_a_thread_that_computes_wants_a_core_and_one_that_waits_does_not() -> None:
    me = threading.get_native_id()
    before = cpu.thread_core_s(me)
    assert before is not None
    while time.thread_time() < before[1] + 0.05:
        pass
    after = cpu.thread_core_s(me)
    assert after is not None
    assert after[0]
    assert after[1] > before[1]
    with ThreadPoolExecutor(1) as executor:
        other = executor.submit(threading.get_native_id).result()
        stop_s = time.monotonic() + 30
        while (waiting := cpu.thread_core_s(other)) is not None and waiting[0]:
            assert time.monotonic() < stop_s
        assert waiting is not None
    assert cpu.thread_core_s(other) is None
