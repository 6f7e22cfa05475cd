"""What becomes of everyone when a batch does not end, and when it ends after all."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from service.batching.batch import BatchDone
from service.batching.batcher import Batcher
from service.batching.cost_model import BatchCost
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.planner import BatchLimits
from service.domain import PairStatus, Priority
from service.errors import NotReady
from tests.fakes import FakeClock, FakeModel, FakePair, generation, until

pytestmark = pytest.mark.anyio

FAR_S = 1e6
MS_A_TOKEN = BatchCost(per_batch_s=0.0, per_token_s=1e-3, per_square_s=0.0)


class Bench:
    """A batcher, and a model of which each batch can be held by itself."""

    def __init__(self, workers: int) -> None:
        self.clock, self.hung, self.sound = FakeClock(), FakeModel(), FakeModel()
        self.hung.hold()
        self.of_hung = generation(self.hung, MS_A_TOKEN)
        self.of_sound = generation(self.sound, MS_A_TOKEN)
        self.done: list[BatchDone] = []
        limits = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.1)
        self.batcher: Batcher[FakePair] = Batcher(
            limits, workers=workers, max_queue_s=FAR_S, clock=self.clock, on_batch=self.done.append
        )

    def ask(self, pairs: list[FakePair], *, hangs: bool = False) -> PendingRequest:
        request = PendingRequest(len(pairs), 1, FAR_S, Priority.AUCTION)
        model = self.of_hung if hangs else self.of_sound
        jobs = [PairJob(pair, model) for pair in pairs]
        for index, job in enumerate(jobs):
            job.subscribe(request, index)
        self.batcher.submit(request, jobs)
        return request

    def hang(self) -> PendingRequest:
        """A request whose only batch has been given up."""
        request = self.ask([FakePair(10)], hangs=True)
        (batch,) = self.batcher.batches()
        self.clock.advance(30)
        self.batcher.give_up(batch)
        return request


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench(workers=2)
    yield made
    made.hung.release()
    await made.batcher.drain(timeout_s=30)


@pytest.fixture
async def alone() -> AsyncIterator[Bench]:
    """With one worker."""
    made = Bench(workers=1)
    yield made
    made.hung.release()
    await made.batcher.drain(timeout_s=30)


async def test_the_pairs_of_a_stuck_batch_fail_at_once_and_the_log_says_after_how_long(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        request = bench.hang()
    assert request.closed
    assert request.statuses == [PairStatus.FAILED]
    assert "did not end in 30.0 s" in caplog.text
    assert [batch.failed for batch in bench.done] == [True]


async def test_the_other_worker_goes_on_alone(bench: Bench) -> None:
    bench.hang()
    assert (bench.batcher.stuck_workers, bench.batcher.usable_workers) == (1, 1)
    assert bench.batcher.running_batches == 0
    bench.sound.hold()
    request = bench.ask([FakePair(10)] * 8)
    running, queued = bench.batcher.running_batches, bench.batcher.queued_pairs
    queued_s = bench.batcher.queued_s
    bench.sound.release()
    assert (running, queued) == (1, 4)
    assert queued_s == pytest.approx(0.04)  # of one worker, not of two
    await request.done
    assert set(request.statuses) == {PairStatus.OK}


async def test_with_no_worker_left_who_waits_is_told_and_who_comes_is_sent_away(
    alone: Bench,
) -> None:
    alone.ask([FakePair(10)], hangs=True)
    settled: list[object] = []
    waiting = PendingRequest(1, 1, FAR_S, Priority.BATCH)
    job = PairJob(FakePair(10), alone.of_sound, settled.append)
    job.subscribe(waiting, 0)
    alone.batcher.submit(waiting, [job])
    (batch,) = alone.batcher.batches()
    alone.batcher.give_up(batch)
    assert waiting.was_cut_off
    assert settled == [None], "nobody may join a pair that will never run"
    assert alone.batcher.usable_workers == 0
    assert alone.batcher.queued_pairs == 0
    with pytest.raises(NotReady, match="stuck"):
        alone.ask([FakePair(10)])


async def test_a_thread_that_comes_back_works_again_and_tells_nobody_twice(
    alone: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    request = alone.hang()
    cost = alone.of_hung.cost
    alone.hung.release()
    await until(lambda: alone.batcher.usable_workers == 1)
    await until(lambda: "works again" in caplog.text)
    assert request.statuses == [PairStatus.FAILED]
    assert alone.of_hung.cost == cost, "a hang says nothing of what batches cost"
    assert len(alone.done) == 1
    sound = alone.ask([FakePair(10, logit=4.0)])
    await sound.done
    assert sound.logits[0] == 4.0


async def test_a_batch_that_ends_just_before_is_not_given_up(bench: Bench) -> None:
    request = bench.ask([FakePair(10)], hangs=True)
    (batch,) = bench.batcher.batches()
    bench.hung.release()
    await until(lambda: bench.batcher.running_batches == 0)
    bench.batcher.give_up(batch)
    assert bench.batcher.stuck_workers == 0
    await request.done
    assert request.statuses == [PairStatus.OK]


async def test_a_drain_does_not_wait_for_what_was_given_up(bench: Bench) -> None:
    bench.hang()
    async with asyncio.timeout(30):
        assert await bench.batcher.drain(timeout_s=FAR_S) == 0


async def test_a_model_takes_over_although_one_of_its_batches_is_stuck(bench: Bench) -> None:
    bench.hang()
    async with asyncio.timeout(30):
        assert await bench.batcher.finish(bench.of_hung, timeout_s=FAR_S)
