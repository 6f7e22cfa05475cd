from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence

import pytest

from service.batching.admission import Machine
from service.batching.batch import BatchDone
from service.batching.batcher import Batcher
from service.batching.cost_model import BatchCost, CostModel
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.planner import BatchLimits
from service.domain import PairStatus, Priority
from service.errors import DeadlineUnreachable, NotReady, QueueFull
from tests.fakes import FakeClock, FakeModel, FakePair, generation, until

pytestmark = pytest.mark.anyio

LIMITS = BatchLimits(max_pairs=4, max_padded_tokens=1000, max_padding_ratio=0.1)
FAR_S = 1e6
MS_A_TOKEN = BatchCost(per_batch_s=0.0, per_token_s=1e-3, per_square_s=0.0)


class Bench:
    """A batcher with one worker, a fake model and a fake clock."""

    def __init__(self) -> None:
        self.clock, self.model = FakeClock(), FakeModel()
        self.generation = generation(self.model, MS_A_TOKEN)
        self.done: list[BatchDone] = []
        self.batcher: Batcher[FakePair] = Batcher(
            LIMITS,
            workers=1,
            max_queue_s=0.5,
            clock=self.clock,
            on_batch=self.done.append,
        )


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.model.release()
    await made.batcher.drain(timeout_s=30)


def auction(
    bench: Bench, pairs: list[FakePair], deadline_s: float = FAR_S, *, all_or_nothing: bool = False
) -> PendingRequest:
    request = PendingRequest(
        len(pairs), 1, deadline_s, Priority.AUCTION, all_or_nothing=all_or_nothing
    )
    jobs = [PairJob(pair, bench.generation) for pair in pairs]
    for index, job in enumerate(jobs):
        job.subscribe(request, index)
    bench.batcher.submit(request, jobs)
    return request


async def test_each_pair_gets_its_own_logit_whatever_the_order_of_the_batches(bench: Bench) -> None:
    pairs = [FakePair(length_tokens=10 + 7 * (i % 5), logit=float(i)) for i in range(23)]
    request = auction(bench, pairs)
    await request.done
    assert request.logits[:, 0].tolist() == [float(i) for i in range(23)]
    assert set(request.statuses) == {PairStatus.OK}


async def test_an_idle_worker_starts_at_once_and_never_waits_for_company(bench: Bench) -> None:
    bench.model.hold()
    auction(bench, [FakePair(10)])
    assert bench.batcher.running_batches == 1
    assert bench.batcher.queued_pairs == 0


async def test_pairs_of_several_requests_that_wait_share_the_next_batch(bench: Bench) -> None:
    bench.model.hold()
    first = auction(bench, [FakePair(10)])
    others = [auction(bench, [FakePair(10, logit=float(i))]) for i in range(3)]
    bench.model.release()
    for request in (first, *others):
        await request.done
    assert [len(batch) for batch in bench.model.batches] == [1, 3]


async def test_a_failing_batch_fails_its_own_pairs_and_nothing_else(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.model.fail_on = lambda pairs: any(pair.logit == 13 for pair in pairs)
    with caplog.at_level(logging.ERROR):
        bad = auction(bench, [FakePair(10, logit=13.0)])
        good = auction(bench, [FakePair(100, logit=1.0)])
        await bad.done
        await good.done
    assert bad.statuses == [PairStatus.FAILED]
    assert good.statuses == [PairStatus.OK]
    assert "told to fail" in caplog.text
    assert [batch.failed for batch in bench.done] == [True, False]


async def test_a_model_that_returns_too_few_rows_fails_the_batch_and_not_the_loop(
    bench: Bench,
) -> None:
    bench.model.rows_short = 1
    assert await settled(bench, [FakePair(10), FakePair(10)]) == [PairStatus.FAILED] * 2
    bench.model.rows_short = 0
    assert await settled(bench, [FakePair(10)]) == [PairStatus.OK]


async def test_an_observer_that_fails_does_not_stop_the_batches(bench: Bench) -> None:
    def fail(_: BatchDone) -> None:
        raise ZeroDivisionError

    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    bench.batcher._on_batch = fail
    bench.model.hold()
    requests = [auction(bench, [FakePair(10 * 3**i)]) for i in range(3)]
    bench.model.release()
    for request in requests:
        await request.done
    assert all(request.statuses == [PairStatus.OK] for request in requests)


async def test_a_worker_thread_that_cannot_start_fails_the_batch_and_loses_no_worker(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_thread(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(bench.batcher._executor, "submit", no_thread)
        assert await settled(bench, [FakePair(10)]) == [PairStatus.FAILED]
    assert bench.batcher.running_batches == 0
    assert await settled(bench, [FakePair(10)]) == [PairStatus.OK]


async def test_a_logit_that_is_not_finite_fails_only_its_own_pair(bench: Bench) -> None:
    pairs = [FakePair(10, logit=1.0), FakePair(10, logit=float("nan")), FakePair(10, logit=2.0)]
    statuses = await settled(bench, pairs)
    assert statuses == [PairStatus.OK, PairStatus.FAILED, PairStatus.OK]


async def settled(bench: Bench, pairs: list[FakePair]) -> list[PairStatus]:
    request = auction(bench, pairs)
    await request.done
    return request.statuses


async def test_pairs_whose_deadline_passes_in_the_queue_never_run(bench: Bench) -> None:
    bench.model.hold()
    running = auction(bench, [FakePair(10)])
    late = auction(bench, [FakePair(10, logit=5.0)] * 2, deadline_s=bench.clock.now_s() + 1)
    bench.clock.advance(2)
    bench.model.release()
    await running.done
    await late.done
    assert late.statuses == [PairStatus.DEADLINE] * 2
    assert [len(batch) for batch in bench.model.batches] == [1]


async def test_pairs_of_a_caller_that_has_gone_never_run(bench: Bench) -> None:
    bench.model.hold()
    running = auction(bench, [FakePair(10)])
    gone = auction(bench, [FakePair(10)] * 3)
    gone.close()
    bench.model.release()
    await running.done
    await until(lambda: bench.batcher.running_batches == 0)
    assert [len(batch) for batch in bench.model.batches] == [1]
    assert bench.batcher.queued_pairs == 0


async def test_a_full_queue_refuses_and_keeps_nothing_of_the_request(bench: Bench) -> None:
    bench.model.hold()
    auction(bench, [FakePair(10)])
    auction(bench, [FakePair(10)] * 48)  # 480 ms, and 10 in the worker
    with pytest.raises(QueueFull):
        auction(bench, [FakePair(10)] * 2)
    assert bench.batcher.queued_pairs == 48
    assert bench.batcher.queued_s == pytest.approx(0.48)


async def test_a_request_that_would_be_late_is_refused_before_it_costs_anything(
    bench: Bench,
) -> None:
    bench.model.hold()
    auction(bench, [FakePair(100)])
    with pytest.raises(DeadlineUnreachable):
        auction(bench, [FakePair(100)], deadline_s=bench.clock.now_s() + 0.15)
    assert bench.batcher.queued_pairs == 0
    auction(bench, [FakePair(100)], deadline_s=bench.clock.now_s() + 0.35)
    assert bench.batcher.queued_pairs == 1


async def test_an_idle_machine_does_what_can_be_done_of_a_request_that_is_too_large(
    bench: Bench,
) -> None:
    bench.model.hold()
    request = auction(bench, [FakePair(10)] * 4 + [FakePair(100)], bench.clock.now_s() + 0.05)
    bench.model.release()
    await request.done
    assert request.statuses == [PairStatus.OK] * 4 + [PairStatus.DEADLINE]


async def test_an_idle_machine_refuses_what_must_be_complete_and_cannot_be(bench: Bench) -> None:
    pairs = [FakePair(10)] * 4 + [FakePair(100)]  # predicted 0.14
    with pytest.raises(DeadlineUnreachable, match=r"5 ads would take 14\d ms or more"):
        auction(bench, pairs, bench.clock.now_s() + 0.05, all_or_nothing=True)
    assert bench.model.batches == []
    request = auction(bench, pairs, bench.clock.now_s() + 0.2, all_or_nothing=True)
    await request.done
    assert set(request.statuses) == {PairStatus.OK}


async def test_an_idle_machine_takes_what_can_be_complete_however_long_it_is(bench: Bench) -> None:
    request = auction(bench, [FakePair(100)] * 20, all_or_nothing=True)  # predicted 2, queue 0.5
    await request.done
    assert set(request.statuses) == {PairStatus.OK}


async def test_a_prediction_that_refuses_all_that_must_be_complete_is_doubted_too(
    bench: Bench,
) -> None:
    for _ in range(100):
        with contextlib.suppress(DeadlineUnreachable):
            deadline_s = bench.clock.now_s() + 0.02
            request = auction(bench, [FakePair(100)], deadline_s, all_or_nothing=True)
            break
    await request.done
    assert request.statuses == [PairStatus.OK]


async def test_a_prediction_that_refuses_all_work_is_doubted_until_work_runs_again(
    bench: Bench,
) -> None:
    for _ in range(100):
        request = auction(bench, [FakePair(100)], bench.clock.now_s() + 0.02)  # predicted 0.1
        await request.done
        if request.statuses == [PairStatus.OK]:
            break
    assert request.statuses == [PairStatus.OK]


async def test_a_pair_that_runs_already_is_shared_and_not_run_again(bench: Bench) -> None:
    bench.model.hold()
    first, second = (PendingRequest(1, 1, FAR_S, Priority.AUCTION) for _ in range(2))
    job = PairJob(FakePair(10, logit=3.0), bench.generation)
    job.subscribe(first, 0)
    bench.batcher.submit(first, [job])
    job.subscribe(second, 0)
    bench.batcher.submit(second, [job])
    assert bench.batcher.queued_pairs == 0
    bench.model.release()
    await second.done
    assert second.logits[0] == 3.0
    assert [len(batch) for batch in bench.model.batches] == [1]


async def test_one_ad_behind_500_is_in_the_next_batch(bench: Bench) -> None:
    bench.batcher._dispatch.queue._machine = Machine(1, FAR_S)
    bench.model.hold()
    auction(bench, [FakePair(20)] * 500)
    small = auction(bench, [FakePair(60, logit=7.0)])
    bench.model.release()
    await small.done
    place = [7.0 in [pair.logit for pair in batch] for batch in bench.model.batches].index(True)
    assert place == 1


async def test_draining_finishes_what_was_accepted_and_takes_no_more(bench: Bench) -> None:
    bench.model.hold()
    requests = [auction(bench, [FakePair(10)] * 6) for _ in range(3)]
    drain = asyncio.ensure_future(bench.batcher.drain(timeout_s=60))
    await until(lambda: bench.batcher._dispatch.draining)
    with pytest.raises(NotReady):
        auction(bench, [FakePair(10)])
    bench.model.release()
    assert await drain == 0
    assert all(request.statuses == [PairStatus.OK] * 6 for request in requests)


async def test_draining_gives_up_when_its_time_is_over_and_says_how_much_was_cut(
    bench: Bench,
) -> None:
    bench.model.hold()
    running, waiting = auction(bench, [FakePair(10)]), auction(bench, [FakePair(10)] * 5)
    drain = asyncio.ensure_future(bench.batcher.drain(timeout_s=3))
    await until(lambda: bool(bench.clock.timers))
    bench.clock.advance(3)
    assert await drain == 6
    assert running.was_cut_off
    assert waiting.was_cut_off


async def test_a_finished_batch_tells_its_size_and_its_padding(bench: Bench) -> None:
    bench.generation.cost_model = CostModel(BatchCost(1.0, 1e-3, 0.0))  # padding costs nothing
    request = auction(bench, [FakePair(19), FakePair(20)])
    await request.done
    await until(lambda: bool(bench.done))
    (batch,) = bench.done
    assert (batch.n_pairs, batch.tokens, batch.padded_tokens) == (2, 39, 40)
    assert batch.predicted_s == pytest.approx(1.04)


def of_another_model(bench: Bench, model: FakeModel, pairs: list[FakePair]) -> PendingRequest:
    bench.generation = generation(model, MS_A_TOKEN)
    return auction(bench, pairs)


async def test_each_model_runs_the_pairs_that_were_encoded_for_it_and_no_other(
    bench: Bench,
) -> None:
    new = FakeModel()
    bench.model.hold()
    old_requests = [auction(bench, [FakePair(10, logit=1.0)] * 3) for _ in range(3)]
    new_requests = [of_another_model(bench, new, [FakePair(10, logit=2.0)] * 3) for _ in range(3)]
    bench.model.release()
    for request in (*old_requests, *new_requests):
        await request.done
        assert request.statuses == [PairStatus.OK] * 3
    assert {pair.logit for batch in bench.model.batches for pair in batch} == {1.0}
    assert {pair.logit for batch in new.batches for pair in batch} == {2.0}


async def test_what_batches_cost_is_learned_for_each_model(bench: Bench) -> None:
    first = bench.generation
    new = FakeModel()

    def take_three_seconds(_: Sequence[FakePair]) -> bool:
        bench.clock.time_s += 3.0
        return False

    new.fail_on = take_three_seconds
    await of_another_model(bench, new, [FakePair(10)]).done
    assert bench.generation.cost.batch_s(1, 10.0) == pytest.approx(3.0)
    assert first.cost == MS_A_TOKEN


async def test_a_generation_has_ended_when_its_last_pair_has_run_and_others_go_on(
    bench: Bench,
) -> None:
    new = FakeModel()
    old = bench.generation
    bench.model.hold()
    last = auction(bench, [FakePair(10)] * 6)
    of_another_model(bench, new, [FakePair(10)] * 6)
    finish = asyncio.ensure_future(bench.batcher.finish(old, timeout_s=60))
    await until(lambda: bool(bench.clock.timers))
    assert not finish.done()
    new.hold()
    bench.model.release()
    assert await finish
    assert last.statuses == [PairStatus.OK] * 6
    assert bench.batcher.running_batches == 1
    new.release()


async def test_an_idle_generation_has_ended_at_once(bench: Bench) -> None:
    assert await bench.batcher.finish(bench.generation, timeout_s=60)


async def test_nobody_waits_for_ever_for_a_generation_to_end(bench: Bench) -> None:
    bench.model.hold()
    late = auction(bench, [FakePair(10)])
    finish = asyncio.ensure_future(bench.batcher.finish(bench.generation, timeout_s=3))
    await until(lambda: bool(bench.clock.timers))
    bench.clock.advance(3)
    assert not await finish
    bench.model.release()
    await late.done
    assert late.statuses == [PairStatus.OK]
