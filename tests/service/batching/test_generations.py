"""Two models' pairs in one queue, while one model takes over from the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.batching.cost_model import BatchCost
from service.batching.generation import Generation
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.pair_queue import PairQueue
from service.batching.planner import BatchLimits
from service.domain import Priority
from service.errors import QueueFull
from tests.fakes import FakeModel, FakePair, generation

pytestmark = pytest.mark.anyio

LIMITS = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.3)
FAST = BatchCost(per_batch_s=0.001, per_token_s=0.005, per_square_s=0.0)
SLOW = BatchCost(per_batch_s=0.003, per_token_s=0.015, per_square_s=0.0)
NOW_S = 10.0

Jobs = list[PairJob[FakePair]]


@dataclass
class Asked:
    """A request that is to be queued."""

    lengths: list[int]
    of_old: bool
    deadline_s: float
    priority: Priority


@dataclass
class Bench:
    """One queue and two models, the new one three times as slow."""

    max_queue_s: float = 1e6
    old: Generation[FakePair] = field(default_factory=lambda: generation(FakeModel(), FAST))
    new: Generation[FakePair] = field(default_factory=lambda: generation(FakeModel(), SLOW))

    def __post_init__(self) -> None:
        self.queue: PairQueue[FakePair] = PairQueue(LIMITS, workers=1, max_queue_s=self.max_queue_s)

    def add(
        self,
        lengths: Sequence[int],
        of: Generation[FakePair],
        deadline_s: float = 1e6,
        priority: Priority = Priority.AUCTION,
    ) -> tuple[PendingRequest, Jobs]:
        request = PendingRequest(len(lengths), 1, deadline_s, priority)
        jobs = [PairJob(FakePair(length), of) for length in lengths]
        for index, job in enumerate(jobs):
            job.subscribe(request, index)
        self.queue.add(request, jobs)
        return request, jobs

    def take(self, now_s: float = NOW_S) -> tuple[Jobs, Jobs]:
        return self.queue.take(now_s, LIMITS.max_pairs)


requests = st.lists(
    st.builds(
        Asked,
        lengths=st.lists(st.integers(3, 60), min_size=1, max_size=12),
        of_old=st.booleans(),
        deadline_s=st.sampled_from([NOW_S + 0.05, NOW_S + 0.3, NOW_S + 2, 1e6]),
        priority=st.sampled_from([Priority.AUCTION, Priority.BATCH]),
    ),
    max_size=12,
)


@given(requests)
def test_a_batch_is_of_one_generation_and_every_pair_leaves_once(asked: list[Asked]) -> None:
    async def scenario() -> None:
        bench = Bench()
        waiting = set()
        for one in asked:
            of = bench.old if one.of_old else bench.new
            _, jobs = bench.add(one.lengths, of, one.deadline_s, one.priority)
            waiting |= {id(job) for job in jobs}
        while waiting:
            batch, doomed = bench.take()
            assert batch or doomed
            assert len({job.generation for job in batch}) <= 1
            left = {id(job) for job in (*batch, *doomed)}
            assert len(left) == len(batch) + len(doomed)
            assert left <= waiting
            waiting -= left
        assert len(bench.queue) == 0

    asyncio.run(scenario())


@given(requests)
def test_no_bulk_pair_runs_while_an_auction_of_either_generation_waits(
    asked: list[Asked],
) -> None:
    async def scenario() -> None:
        bench = Bench()
        auctions = set()
        for one in asked:
            of = bench.old if one.of_old else bench.new
            request, jobs = bench.add(one.lengths, of, priority=one.priority)
            if request.priority is Priority.AUCTION:
                auctions |= {id(job) for job in jobs}
        while len(bench.queue):
            batch, _ = bench.take()
            ids = {id(job) for job in batch}
            assert ids <= auctions or not auctions
            auctions -= ids

    asyncio.run(scenario())


@pytest.mark.parametrize("old_waits", [True, False])
async def test_newcomers_of_one_generation_do_not_starve_the_other(old_waits: bool) -> None:
    bench = Bench()
    waits, comes = (bench.old, bench.new) if old_waits else (bench.new, bench.old)
    _, large = bench.add([20] * 20, waits)
    rounds = 0
    while bench.queue.has(waits):
        bench.add([20] * 4, comes)  # as much as a batch takes: always more work
        bench.take()
        rounds += 1
        assert rounds <= 60
    assert all(job.row < 0 for job in large)


async def test_who_is_short_of_time_goes_first_whatever_the_generation() -> None:
    bench = Bench()
    bench.add([20] * 8, bench.old)
    _, pressed = bench.add([20], bench.new, deadline_s=NOW_S + 0.4)
    assert bench.take()[0] == pressed


async def test_a_pair_is_doomed_by_what_its_own_model_costs() -> None:
    bench = Bench()
    deadline_s = NOW_S + 0.2  # a pair of 20 takes 0.1 s by the old model, 0.3 s by the new one
    _, by_old = bench.add([20], bench.old, deadline_s)
    _, by_new = bench.add([20], bench.new, deadline_s)
    assert bench.take() == (by_old, by_new)


async def test_the_room_is_counted_at_what_each_model_costs() -> None:
    bench = Bench(max_queue_s=1.0)
    bench.add([20] * 2, bench.old)
    bench.add([20] * 2, bench.new)
    own_s = [cost.share_s(bench.queue._waiting()[0].length_tokens[:2], 4).sum()
             for cost in (FAST, SLOW)]  # fmt: skip
    assert bench.queue.wait_s() == pytest.approx(sum(own_s))
    request = PendingRequest(1, 1, 1e6, Priority.AUCTION)
    bench.queue.check_room(request, bench.old, [20], busy_s=0.0, caution=1.0, now_s=NOW_S)
    with pytest.raises(QueueFull):
        bench.queue.check_room(request, bench.new, [20], busy_s=0.0, caution=1.0, now_s=NOW_S)


async def test_a_generation_of_which_nothing_waits_leaves_nothing_behind() -> None:
    bench = Bench()
    request, jobs = bench.add([20] * 3, bench.old)
    bench.add([20], bench.new)
    request.close()
    bench.queue.release(jobs)
    assert not bench.queue.has(bench.old)
    assert bench.queue.has(bench.new)
    assert list(bench.queue._tables) == [bench.new]
