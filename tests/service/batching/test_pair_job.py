from __future__ import annotations

import numpy as np
import pytest

from service.batching.pair_job import PairJob, PendingRequest
from service.domain import PairStatus, Priority
from tests.fakes import FakeModel, FakePair, generation

pytestmark = pytest.mark.anyio

MODEL = generation(FakeModel())
LOGIT = np.array([2.5], dtype=np.float32)


def a_request(n_pairs: int) -> PendingRequest:
    return PendingRequest(n_pairs, 1, 99.0, Priority.AUCTION)


async def test_the_future_is_done_with_the_last_pair() -> None:
    pending = a_request(2)
    pending.settle(1, PairStatus.OK, LOGIT)
    assert not pending.done.done()
    pending.settle(0, PairStatus.FAILED, None)
    assert pending.done.done()
    assert pending.statuses == [PairStatus.FAILED, PairStatus.OK]
    assert pending.logits[1] == 2.5


async def test_what_was_known_before_is_settled_at_once_and_the_rest_is_waited_for() -> None:
    pending, known = a_request(3), np.array([[1.0], [9.0], [3.0]], np.float32)
    pending.settle_cached(np.array([True, False, True]), known)
    assert pending.statuses == [PairStatus.CACHED, PairStatus.DEADLINE, PairStatus.CACHED]
    assert pending.logits[:, 0].tolist() == [1, 0, 3]
    assert not pending.done.done()
    pending.settle(1, PairStatus.OK, LOGIT)
    assert pending.done.done()
    whole = a_request(3)
    whole.settle_cached(np.array([True] * 3), known)
    assert whole.closed


async def test_outcomes_that_come_after_the_close_are_dropped() -> None:
    pending = a_request(2)
    pending.settle(0, PairStatus.OK, LOGIT)
    pending.close()
    pending.settle(1, PairStatus.OK, LOGIT)
    assert pending.statuses == [PairStatus.OK, PairStatus.DEADLINE]
    assert pending.logits[1] == 0


async def test_the_end_of_a_request_is_told_once() -> None:
    told: list[str] = []
    early, complete = a_request(1), a_request(1)
    early.on_closed = lambda: told.append("early")
    complete.on_closed = lambda: told.append("complete")
    complete.settle(0, PairStatus.OK, LOGIT)
    for request in (early, complete, early, complete):
        request.close()
    assert told == ["complete", "early"]
    assert early.is_late
    assert not complete.is_late


async def test_one_computation_settles_everyone_who_asked_for_the_pair() -> None:
    outcomes: list[object] = []
    job = PairJob(FakePair(10), MODEL, on_settled=outcomes.append)
    first, second = a_request(1), a_request(2)
    job.subscribe(first, 0)
    job.subscribe(second, 0)
    job.subscribe(second, 1)
    job.settle(PairStatus.OK, LOGIT)
    assert job.settled
    assert outcomes == [LOGIT]
    assert first.done.done()
    assert second.statuses == [PairStatus.OK] * 2


async def test_a_job_is_wanted_as_long_as_one_request_waits() -> None:
    job: PairJob[FakePair] = PairJob(FakePair(10), MODEL)
    first, second = a_request(1), a_request(1)
    job.subscribe(first, 0)
    job.subscribe(second, 0)
    first.close()
    assert job.n_wanted == 1
    second.close()
    assert job.n_wanted == 0


async def test_the_first_batch_of_a_request_is_what_counts_as_its_start() -> None:
    pending = a_request(2)
    for at_s in (3.0, 4.0):
        job: PairJob[FakePair] = PairJob(FakePair(10), MODEL)
        job.subscribe(pending, 0)
        job.settle(PairStatus.OK, LOGIT, at_s)
    assert pending.started_s == 3.0


async def test_a_cut_off_ends_the_requests_that_still_wait_and_says_so() -> None:
    job: PairJob[FakePair] = PairJob(FakePair(10), MODEL)
    here, gone = a_request(1), a_request(1)
    job.subscribe(here, 0)
    job.subscribe(gone, 0)
    gone.close()
    job.cut_off()
    assert here.was_cut_off
    assert not gone.was_cut_off
