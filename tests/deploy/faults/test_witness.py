from __future__ import annotations

import threading
import time

import pytest

from deploy.faults.witness import EVERY_S, Wait, Witness, waits

DEADLINE_S = 60


def test_a_witness_that_runs_when_it_is_due_waited_at_no_time() -> None:
    assert waits([10.0, 10.0 + EVERY_S], 10.0 + 1.5 * EVERY_S) == []


def test_what_lies_between_being_due_and_running_is_a_wait_and_so_is_what_has_no_end_yet() -> None:
    first, second = waits([10.0, 11.0], 12.0)
    assert (first, second) == (Wait(10 + EVERY_S, 11), Wait(11 + EVERY_S, 12))


def test_a_witness_that_has_not_begun_tells_nothing() -> None:
    assert waits([], 12.0) == []


@pytest.mark.parametrize(
    ("begin_s", "end_s", "within_s"),
    [(0, 9, 0), (0, 11, 1), (11, 12, 1), (12, 99, 1), (0, 99, 3), (13, 99, 0)],
)
def test_a_wait_counts_as_far_as_it_lies_in_a_time(
    begin_s: float, end_s: float, within_s: float
) -> None:
    assert Wait(10, 13).within_s(begin_s, end_s) == within_s


def test_a_witness_runs_in_a_process_of_its_own_until_it_is_told_to_end() -> None:
    stop_s = time.monotonic() + DEADLINE_S
    with Witness() as witness:
        while not witness.waits():  # a machine on which no sleep ever ends late is not to be had
            assert time.monotonic() < stop_s
            threading.Event().wait(EVERY_S)
        assert all(wait.end_s <= time.monotonic() for wait in witness.waits())
        process = witness._process
        assert process.poll() is None
    assert process.poll() is not None
