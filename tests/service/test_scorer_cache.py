from __future__ import annotations

import asyncio
import dataclasses
import gc
import weakref
from collections.abc import Sequence
from typing import Any

import pytest

from service.batching.cost_model import BatchCost
from service.caching.score_cache import KEPT_AT_ONCE_PAIRS, ScoreCache
from service.caching.token_cache import TokenCache
from service.domain import Ad, PairStatus, ScoreQuery
from service.errors import InferenceFailed, QueueFull
from service.scorer import PAIRS_A_STEP, Scorer
from service.text_tokens import TextTokens
from tests.fakes import FakeModel, FakePair, generation, until
from tests.service.scorer_bench import Bench, FakeText, query, several

pytestmark = pytest.mark.anyio


async def test_a_pair_that_was_scored_before_comes_from_the_cache_with_the_same_score(
    cached: Bench,
) -> None:
    first = await cached.scorer.score(query("33", "77 long long text"))
    again = await cached.scorer.score(query("77 long long text", "33"))
    assert [ad.status for ad in first.scores] == [PairStatus.OK] * 2
    assert [ad.status for ad in again.scores] == [PairStatus.CACHED] * 2
    assert [ad.score for ad in again.scores] == [ad.score for ad in first.scores][::-1]
    assert [ad.truncated for ad in again.scores] == [True, False]
    assert sum(map(len, cached.model.batches)) == 2
    assert again.times.total_s == again.times.encode_s


async def test_only_what_is_missing_is_computed(cached: Bench) -> None:
    await cached.scorer.score(query("1", "2"))
    answer = await cached.scorer.score(query("1", "3", "2"))
    assert [ad.status for ad in answer.scores] == [
        PairStatus.CACHED,
        PairStatus.OK,
        PairStatus.CACHED,
    ]
    assert [ad.score for ad in answer.scores] == [0.01, 0.03, 0.02]
    assert sum(map(len, cached.model.batches)) == 3


async def test_cached_scores_make_an_answer_where_the_rest_comes_too_late(cached: Bench) -> None:
    await cached.scorer.score(query("1"))
    cached.model.hold()
    task = asyncio.ensure_future(cached.scorer.score(query("1", "2")))
    await until(lambda: cached.batcher.running_batches == 1)
    cached.clock.advance(1.0)
    assert [ad.status for ad in (await task).scores] == [PairStatus.CACHED, PairStatus.DEADLINE]


async def test_a_failure_is_not_cached(cached: Bench) -> None:
    cached.model.fail_on = lambda _: True
    with pytest.raises(InferenceFailed):
        await cached.scorer.score(query("1"))
    cached.model.fail_on = lambda _: False
    assert (await cached.scorer.score(query("1"))).scores[0].status is PairStatus.OK


@pytest.mark.parametrize("cache_bytes", [0, 2**20])
async def test_identical_pairs_in_flight_run_once(cache_bytes: int) -> None:
    bench = Bench(cache_bytes)
    bench.model.hold()
    first = asyncio.ensure_future(bench.scorer.score(query("5", "6", "5")))
    await until(lambda: bench.batcher.running_batches == 1)
    second = asyncio.ensure_future(bench.scorer.score(query("6", "7", "5")))
    await until(lambda: bench.batcher.queued_pairs > 0)
    bench.model.release()
    assert [ad.score for ad in (await first).scores] == [0.05, 0.06, 0.05]
    assert [ad.score for ad in (await second).scores] == [0.06, 0.07, 0.05]
    assert sorted(pair.logit for batch in bench.model.batches for pair in batch) == [5, 6, 7]
    assert bench.scores.store.counts.joined == 3
    assert len(bench.scorer._in_flight) == 0
    await bench.batcher.drain(timeout_s=30)


async def test_a_caller_that_leaves_does_not_take_away_a_pair_that_another_waits_for(
    bench: Bench,
) -> None:
    bench.model.hold()
    blocker = asyncio.ensure_future(bench.scorer.score(query("1")))
    await until(lambda: bench.batcher.running_batches == 1)
    leaves = asyncio.ensure_future(bench.scorer.score(query("8", "9")))
    await until(lambda: bench.batcher.queued_pairs == 2)
    stays = asyncio.ensure_future(bench.scorer.score(query("9")))
    await until(lambda: bench.scores.store.counts.joined == 1)
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    assert bench.batcher.queued_pairs == 1
    bench.model.release()
    assert (await stays).scores[0].score == 0.09
    await blocker
    assert sorted(pair.logit for batch in bench.model.batches for pair in batch) == [1, 9]


async def test_pairs_that_a_refused_request_would_have_added_do_not_wait_for_ever(
    bench: Bench,
) -> None:
    bench.model.hold()
    running = asyncio.ensure_future(bench.scorer.score(query("1", timeout_s=9)))
    await until(lambda: bench.batcher.running_batches == 1)
    with pytest.raises(QueueFull):
        await bench.scorer.score(query(*map(str, range(500)), timeout_s=9))
    bench.model.release()
    await running
    assert (await bench.scorer.score(query("2"))).scores[0].score == 0.02


async def test_pairs_of_several_queries_are_cached_like_those_of_one(cached: Bench) -> None:
    await cached.scorer.score(several("1", "22", "1", texts=["70", "70", "70"]))
    assert sum(map(len, cached.model.batches)) == 2
    again = await cached.scorer.score(several("22", "333", texts=["70", "70"]))
    assert [ad.status for ad in again.scores] == [PairStatus.CACHED, PairStatus.OK]
    one = ScoreQuery("r2", "1", (Ad("a", text="70"),), 1.0)
    assert (await cached.scorer.score(one)).scores[0].status is PairStatus.CACHED


async def test_a_pair_asked_for_by_two_large_requests_at_once_is_computed_once(
    bench: Bench,
) -> None:
    texts = [str(number) for number in range(2 * PAIRS_A_STEP)]
    answers = await asyncio.gather(
        *(bench.scorer.score(query(*texts, timeout_s=60)) for _ in range(2))
    )
    assert answers[0].scores == answers[1].scores
    assert sum(map(len, bench.model.batches)) == len(texts)


async def test_what_a_large_request_computed_is_kept_in_steps_too(
    cached: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[int] = []
    insert = ScoreCache.insert

    def noted(self: ScoreCache, keys: Sequence[bytes], *values: Any) -> None:  # noqa: ANN401  # handed on as they are
        kept.append(len(keys))
        insert(self, keys, *values)

    monkeypatch.setattr(ScoreCache, "insert", noted)
    texts = [str(number) for number in range(2 * KEPT_AT_ONCE_PAIRS + 2)]
    await cached.scorer.score(query(*texts, timeout_s=60))
    cached.scorer.prepare(query("another"), accepted_s=0)
    assert kept == [KEPT_AT_ONCE_PAIRS, KEPT_AT_ONCE_PAIRS, 2]


async def test_pairs_that_were_made_up_are_looked_up_but_not_kept(cached: Bench) -> None:
    await cached.scorer.score(query("70"))
    probe = dataclasses.replace(query("70", "50"), probe=True)
    for _ in range(2):
        answer = await cached.scorer.score(probe)
        assert [ad.status for ad in answer.scores] == [PairStatus.CACHED, PairStatus.OK]
    assert (await cached.scorer.score(query("50"))).scores[0].status is PairStatus.OK


async def test_a_request_is_finished_by_the_model_it_began_with_while_another_takes_over(
    cached: Bench,
) -> None:
    await cached.scorer.score(query("3"))
    cached.model.hold()
    began = asyncio.ensure_future(cached.scorer.score(query("1", "2", "3")))
    await until(lambda: cached.batcher.running_batches == 1)
    model, text = FakeModel(), FakeText()
    scores = ScoreCache(2**20, 1, "v2", before=cached.scores)
    other: Scorer[FakePair] = Scorer(
        text,
        generation(model, BatchCost(1e-3, 1e-9, 1e-9)),
        cached.batcher,
        cached.clock,
        scores,
        TextTokens(text.tokenize, TokenCache(0, 8)),
        answer_margin_s=0.01,
    )
    begins = asyncio.ensure_future(other.score(query("1", "2", "3")))
    await until(lambda: cached.batcher.queued_pairs == 3)  # none is joined, none is cached
    cached.model.release()
    assert {ad.status for ad in (await begins).scores} == {PairStatus.OK}
    assert [ad.score for ad in (await began).scores] == [0.01, 0.02, 0.03]
    assert sorted(pair.logit for batch in model.batches for pair in batch) == [1, 2, 3]
    assert sorted(pair.logit for batch in cached.model.batches for pair in batch) == [1, 2, 3]


async def test_an_ended_request_leaves_nothing_that_keeps_its_model(cached: Bench) -> None:
    text, ran = FakeText(), generation(FakeModel(), BatchCost(1e-3, 1e-9, 1e-9))
    scorer: Scorer[FakePair] = Scorer(
        text,
        ran,
        cached.batcher,
        cached.clock,
        ScoreCache(0, 1, "v2"),
        TextTokens(text.tokenize, TokenCache(0, 8)),
        answer_margin_s=0.01,
    )
    gc.disable()  # reference counts alone
    try:
        await scorer.score(query("1", "2", "1", "3"))
        left = weakref.ref(ran)
        del scorer, ran
        cached.clock.timers.clear()  # the fake keeps what was cancelled
        await until(lambda: left() is None)
    finally:
        gc.enable()
