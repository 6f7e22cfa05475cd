from __future__ import annotations

import numpy as np
import pytest

from service.batching.batch import Batch
from service.batching.cost_model import BatchCost
from service.batching.dispatch import Dispatch
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.planner import BatchLimits
from service.batching.split_run import Run
from service.domain import Priority
from service.errors import DeadlineUnreachable, NotReady
from tests.fakes import FakeModel, FakePair, generation

pytestmark = pytest.mark.anyio  # a request has a future, which wants an event loop

LIMITS = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.1)
FAR_S = 1e6
SCORED = Run(np.zeros((1, 1), np.float32))


class Bench:
    """Two workers, and one model at 1 ms a token."""

    def __init__(self) -> None:
        self.dispatch: Dispatch[FakePair] = Dispatch(LIMITS, workers=2, max_queue_s=0.5)
        self.generation = generation(FakeModel(), BatchCost(0.0, 1e-3, 0.0))

    def admit(self, n_pairs: int, deadline_s: float = FAR_S, length: int = 10) -> bool:
        request = PendingRequest(n_pairs, 1, deadline_s, Priority.AUCTION)
        jobs = [PairJob(FakePair(length), self.generation) for _ in range(n_pairs)]
        for index, job in enumerate(jobs):
            job.subscribe(request, index)
        return self.dispatch.admit(request, jobs, now_s=0.0)

    def start(self) -> list[Batch[FakePair]]:
        started, doomed = self.dispatch.batches_for_idle_workers(now_s=0.0)
        assert doomed == []
        return started


@pytest.fixture
async def bench() -> Bench:
    return Bench()


async def test_each_idle_worker_gets_its_share_of_what_waits(bench: Bench) -> None:
    bench.admit(6)
    assert [len(batch.jobs) for batch in bench.start()] == [3, 3]
    assert bench.start() == []
    assert bench.dispatch.has(bench.generation)


async def test_a_worker_whose_batch_has_ended_takes_a_full_one_of_what_waits(bench: Bench) -> None:
    bench.admit(6)
    first, _ = bench.start()
    bench.admit(8)
    assert bench.dispatch.end(first, SCORED, ended_s=0.03)
    batch, doomed = bench.dispatch.batch_for_one_worker(now_s=0.03)
    assert batch is not None
    assert (len(batch.jobs), batch.started_s, doomed) == (LIMITS.max_pairs, 0.03, [])


async def test_with_nothing_waiting_no_batch_starts(bench: Bench) -> None:
    assert bench.dispatch.batch_for_one_worker(now_s=0.0) == (None, [])
    assert bench.dispatch.is_empty


async def test_only_what_comes_to_a_busy_machine_is_held_against_a_prediction(
    bench: Bench,
) -> None:
    assert not bench.admit(6)
    bench.start()
    assert bench.admit(1)
    with pytest.raises(DeadlineUnreachable):
        bench.admit(8, deadline_s=0.01)
    assert len(bench.dispatch.queue) == 1


async def test_missed_deadlines_make_the_next_request_of_the_class_harder_to_admit(
    bench: Bench,
) -> None:
    bench.admit(2)
    bench.start()
    bench.admit(1, deadline_s=0.04)
    for _ in range(200):
        bench.dispatch.learn(Priority.AUCTION, was_late=True)
    with pytest.raises(DeadlineUnreachable):
        bench.admit(1, deadline_s=0.04)


async def test_nothing_new_is_taken_in_while_draining(bench: Bench) -> None:
    bench.dispatch.draining = True
    with pytest.raises(NotReady, match="draining before a stop"):
        bench.admit(1)
    assert bench.dispatch.is_empty


async def test_what_waits_is_given_back_when_the_last_worker_is_given_up(bench: Bench) -> None:
    bench.admit(8)
    first, second = bench.start()
    bench.admit(3)
    assert bench.dispatch.give_up(first) == []
    left = bench.dispatch.give_up(second)
    assert left is not None
    assert len(left) == 3
    assert bench.dispatch.give_up(second) is None
    with pytest.raises(NotReady, match="every inference thread is stuck"):
        bench.admit(1)


async def test_a_batch_that_comes_back_after_all_is_not_awaited_and_frees_its_worker(
    bench: Bench,
) -> None:
    bench.admit(8)
    first, _ = bench.start()
    bench.dispatch.give_up(first)
    assert bench.dispatch.slots.usable == 1
    assert not bench.dispatch.end(first, SCORED, ended_s=9.0)
    assert bench.dispatch.slots.usable == 2


async def test_batches_are_smaller_after_one_that_did_not_fit(bench: Bench) -> None:
    bench.admit(8)
    first, _ = bench.start()
    bench.dispatch.end(first, Run(MemoryError(), too_large_tokens=40), ended_s=0.0)
    assert bench.dispatch.budget_tokens(now_s=0.0) == 20
    bench.admit(8)
    assert [len(batch.jobs) for batch in bench.start()] == [2]


async def test_clearing_tells_of_all_that_waits_and_all_that_runs(bench: Bench) -> None:
    bench.admit(8)
    bench.start()
    bench.admit(2)
    assert len(bench.dispatch.clear()) == 10
    assert len(bench.dispatch.queue) == 0
