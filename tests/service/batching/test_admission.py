from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.batching.admission import Admission, Candidate, Caution, Machine, Verdict, decide
from service.batching.waiting import WaitingPairs

NOW_S = 50.0

Waiting = Sequence[tuple[float, int]]  # deadline from now, priority


def asked(  # noqa: PLR0913  # all that a decision depends on
    waiting: Waiting,
    deadline_s: float,
    *,
    work_s: float = 1.0,
    priority: int = 0,
    busy_s: float = 0.0,
    workers: int = 1,
    max_queue_s: float = 1e9,
    caution: float = 1.0,
    is_idle: bool = False,
) -> Admission | None:
    """What is said to a refused request; every waiting pair takes one second."""
    n = len(waiting)
    pairs = WaitingPairs(
        length_tokens=np.ones(n),
        priority=np.array([row[1] for row in waiting], dtype=np.float64),
        turn=np.zeros(n),
        latest_start_s=np.zeros(n),
        deadline_s=np.array([NOW_S + row[0] for row in waiting]),
    )
    candidate = Candidate(work_s, min(work_s, 1.0), NOW_S + deadline_s, priority)
    admission = decide(
        pairs,
        np.ones(n),
        candidate,
        Machine(workers, max_queue_s),
        busy_s=busy_s,
        caution=caution,
        now_s=NOW_S,
        is_idle=is_idle,
    )
    return None if admission.verdict is Verdict.TAKEN else admission


def test_a_request_that_can_be_done_in_time_is_taken() -> None:
    assert asked([(9, 0)] * 3, deadline_s=4.1) is None


def test_a_request_that_would_be_late_is_refused_with_the_time_it_would_take() -> None:
    refused = asked([(3, 0)] * 3, deadline_s=3.9)
    assert refused is not None
    assert refused.verdict is Verdict.WOULD_BE_LATE
    assert refused.wait_s == 4.0
    assert 0 < refused.retry_after_s < 0.2


def test_work_with_a_later_deadline_does_not_stand_in_the_way() -> None:
    assert asked([(100, 0)] * 50, deadline_s=1.5) is None


def test_a_request_that_would_make_an_admitted_one_late_is_refused() -> None:
    tight = [(3.0, 0)] * 3
    assert asked(tight, deadline_s=1.5) is not None
    assert asked([(4.0, 0)] * 3, deadline_s=1.5) is None


def test_what_is_late_anyway_keeps_nobody_out() -> None:
    assert asked([(0.5, 0), (9, 0)], deadline_s=3) is None


def test_the_batches_that_run_are_waited_for() -> None:
    assert asked([], deadline_s=2, busy_s=2) is not None
    assert asked([], deadline_s=3.1, busy_s=2) is None


def test_more_workers_take_more() -> None:
    assert asked([(9, 0)] * 6, deadline_s=4, workers=2, work_s=2.0) is None
    assert asked([(3, 0)] * 6, deadline_s=3.5, workers=2, work_s=2.0) is not None


def test_no_number_of_workers_makes_one_pair_faster() -> None:
    assert asked([], deadline_s=0.5, workers=100) is not None


def test_caution_counts_against_deadlines_and_not_against_the_queue() -> None:
    assert asked([(7, 0)] * 3, deadline_s=7.9, caution=2.0) is not None
    assert asked([(7, 0)] * 3, deadline_s=8.1, caution=2.0, max_queue_s=4.5) is None
    assert asked([(8, 0)] * 4, deadline_s=2.1, caution=2.0) is not None


@given(
    st.floats(0.01, 100),
    st.floats(0.01, 100),
    st.integers(1, 4),
    st.floats(0, 10),
    st.floats(1, 3),
)
def test_an_idle_machine_takes_what_it_can_complete_in_time_however_long_that_is(
    work_s: float, deadline_s: float, workers: int, busy_s: float, caution: float
) -> None:
    refused = asked(
        [],
        deadline_s,
        work_s=work_s,
        workers=workers,
        busy_s=busy_s,
        caution=caution,
        max_queue_s=0.5,
        is_idle=True,
    )
    end_s = busy_s / workers + max(work_s / workers, min(work_s, 1.0))
    if abs(end_s - deadline_s) > 1e-9:
        assert (refused is None) == (end_s < deadline_s)
    if refused is not None:
        assert refused.verdict is Verdict.WOULD_BE_LATE


def test_a_queue_of_too_many_seconds_is_full() -> None:
    refused = asked([(99, 0)] * 4, deadline_s=99, max_queue_s=4.5)
    assert refused is not None
    assert refused.verdict is Verdict.QUEUE_FULL
    assert refused.retry_after_s == 0.5
    assert asked([(99, 0)] * 3, deadline_s=99, max_queue_s=4.5) is None


def test_bulk_work_does_not_stand_in_the_way_of_an_auction() -> None:
    assert asked([(99, 1)] * 50, deadline_s=1.5, max_queue_s=10) is None


def test_auctions_stand_in_the_way_of_bulk_work_which_is_shed_first() -> None:
    waiting = [(99, 0)] * 4 + [(99, 1)] * 4
    assert asked(waiting, deadline_s=99, priority=1, max_queue_s=8.5) is not None
    assert asked(waiting, deadline_s=99, priority=0, max_queue_s=8.5) is None


@given(
    st.lists(st.tuples(st.floats(0.5, 30), st.integers(0, 1)), max_size=20),
    st.floats(0.5, 30),
    st.integers(1, 4),
)
def test_served_by_deadline_nobody_who_was_admitted_in_turn_is_late(
    requests: list[tuple[float, int]], deadline_s: float, workers: int
) -> None:
    admitted: list[tuple[float, int]] = []
    for request in [*requests, (deadline_s, 0)]:
        if asked(admitted, request[0], priority=request[1], workers=workers) is None:
            admitted.append(request)
    auctions = sorted(deadline for deadline, priority in admitted if priority == 0)
    ends_s = np.arange(1, len(auctions) + 1) / workers
    assert (ends_s <= np.array(auctions) + 1e-9).all()


def test_caution_settles_where_nearly_all_admitted_requests_are_on_time() -> None:
    caution, rng = Caution(), random.Random(1)  # noqa: S311  # the same requests in every run
    late = 0
    for number in range(6000):
        was_late = rng.uniform(0.8, 1.6) > caution.factor
        late += number >= 2000 and was_late
        caution.learn(was_late)
    assert 1.4 < caution.factor < 2.0
    assert late / 4000 < 0.015


def test_caution_has_a_limit_and_is_forgotten_when_all_are_on_time() -> None:
    caution = Caution()
    for _ in range(100):
        caution.learn(was_late=True)
    assert caution.factor == Caution.MOST
    for _ in range(4000):
        caution.learn(was_late=False)
    assert caution.factor == Caution.LEAST
