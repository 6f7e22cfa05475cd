from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from service.domain import Ad, PairStatus
from service.errors import DeadlineExceeded, InferenceFailed, QueueFull
from service.scorer import PAIRS_A_STEP
from service.text_tokens import INLINE_MAX_CHARS
from tests.fakes import FakePair, until
from tests.service.scorer_bench import Bench, query, several

pytestmark = pytest.mark.anyio


async def test_scores_keep_the_order_and_the_ids_of_the_ads(bench: Bench) -> None:
    answer = await bench.scorer.score(query("70", "5", "99", "30", "12"))
    assert [ad.score for ad in answer.scores] == [0.7, 0.05, 0.99, 0.3, 0.12]
    assert [ad.ad_id for ad in answer.scores] == [f"ad-{i}" for i in range(5)]
    assert {ad.status for ad in answer.scores} == {PairStatus.OK}


async def test_eligibility_is_marked_only_when_asked_for_and_includes_the_limit(
    bench: Bench,
) -> None:
    marked = await bench.scorer.score(query("70", "50", "49", min_score=0.5))
    assert [ad.eligible for ad in marked.scores] == [True, True, False]
    plain = await bench.scorer.score(query("70"))
    assert plain.scores[0].eligible is None


async def test_text_that_did_not_fit_is_flagged(bench: Bench) -> None:
    answer = await bench.scorer.score(query("70", "50 very long text"))
    assert [ad.truncated for ad in answer.scores] == [False, True]


async def test_what_must_be_complete_and_is_late_before_the_queue_is_not_called_refused(
    bench: Bench,
) -> None:
    asked = dataclasses.replace(query("70"), all_or_nothing=True)
    prepared = bench.scorer.prepare(asked, bench.clock.now_s() - 5)
    with pytest.raises(DeadlineExceeded):
        await bench.scorer.complete(prepared)


async def test_at_the_deadline_the_answer_leaves_with_the_scores_that_are_there(
    bench: Bench,
) -> None:
    def hold_the_next(_: Sequence[FakePair]) -> bool:
        bench.model.hold()
        return False

    bench.model.fail_on = hold_the_next
    task = asyncio.ensure_future(bench.scorer.score(query("70", "50", "30", "20")))
    await until(lambda: len(bench.model.batches) == 2 and len(bench.done) == 1)
    bench.clock.advance(1.0)
    answer = await task
    by_status = sorted((ad.status, ad.score is None) for ad in answer.scores)
    assert by_status == [
        (PairStatus.DEADLINE, True),
        (PairStatus.DEADLINE, True),
        (PairStatus.OK, False),
        (PairStatus.OK, False),
    ]


async def test_a_request_with_no_score_in_time_says_so(bench: Bench) -> None:
    bench.model.hold()
    task = asyncio.ensure_future(bench.scorer.score(query("70", "50", timeout_s=0.03)))
    await until(lambda: bool(bench.clock.timers))
    bench.clock.advance(0.03)
    with pytest.raises(DeadlineExceeded, match="none of 2 ads had a score within 30 ms"):
        await task


async def test_a_request_on_which_the_model_fails_says_so(bench: Bench) -> None:
    bench.model.fail_on = lambda _: True
    with pytest.raises(InferenceFailed):
        await bench.scorer.score(query("70", "50"))


async def test_a_failure_and_a_deadline_together_are_a_deadline(bench: Bench) -> None:
    def fail_and_hold_the_next(_: Sequence[FakePair]) -> bool:
        bench.model.hold()
        return True

    bench.model.fail_on = fail_and_hold_the_next
    task = asyncio.ensure_future(bench.scorer.score(query("1", "2", "3")))
    await until(lambda: len(bench.model.batches) == 2)
    bench.clock.advance(1.0)
    with pytest.raises(DeadlineExceeded):
        await task


async def test_the_deadline_holds_while_a_long_text_is_encoded(bench: Bench) -> None:
    bench.text.gate.clear()
    long_text = "42 " + "x" * INLINE_MAX_CHARS
    task = asyncio.ensure_future(bench.scorer.score(query(long_text, timeout_s=0.5)))
    await until(lambda: bool(bench.clock.timers))
    bench.clock.advance(0.5)
    with pytest.raises(DeadlineExceeded):
        await task
    bench.text.gate.set()
    assert bench.model.batches == []


async def test_the_answer_leaves_a_little_before_the_deadline_to_be_there_in_time(
    bench: Bench,
) -> None:
    bench.model.hold()
    for timeout_s, early_s in ((0.5, 0.01), (0.02, 0.005)):
        task = asyncio.ensure_future(bench.scorer.score(query("1", timeout_s=timeout_s)))
        await until(lambda: bool(bench.clock.timers))
        assert bench.clock.timers[0].when_s == pytest.approx(
            bench.clock.now_s() + timeout_s - early_s
        )
        bench.clock.advance(timeout_s)
        with pytest.raises(DeadlineExceeded):
            await task


async def test_one_failing_batch_does_not_cost_the_other_ads_their_scores(bench: Bench) -> None:
    bench.model.fail_on = lambda pairs: any(pair.logit == 13 for pair in pairs)
    answer = await bench.scorer.score(query("13", "70 long long", "50 long long"))
    assert [ad.status for ad in answer.scores] == [
        PairStatus.FAILED,
        PairStatus.OK,
        PairStatus.OK,
    ]
    assert answer.scores[0].score is None


async def test_a_caller_that_goes_away_takes_its_pairs_out_of_the_queue(bench: Bench) -> None:
    bench.model.hold()
    task = asyncio.ensure_future(bench.scorer.score(query("1", "2", "3", "4", "5", "6")))
    await until(lambda: bench.batcher.queued_pairs > 0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    bench.model.release()
    await until(lambda: bench.batcher.running_batches == 0)
    assert len(bench.model.batches) == 1


async def test_a_refused_request_leaves_nothing_behind(bench: Bench) -> None:
    bench.model.hold()
    running = asyncio.ensure_future(bench.scorer.score(query("1", timeout_s=9)))
    await until(lambda: bench.batcher.running_batches == 1)
    with pytest.raises(QueueFull):
        await bench.scorer.score(query(*map(str, range(500)), timeout_s=9))
    assert bench.batcher.queued_pairs == 0
    assert len(bench.scorer._in_flight) == 1
    bench.model.release()
    await running


async def test_a_request_too_large_for_the_queue_is_refused_before_its_texts_are_read(
    bench: Bench,
) -> None:
    bench.model.hold()
    running = asyncio.ensure_future(bench.scorer.score(query("1", timeout_s=9)))
    await until(lambda: bench.batcher.running_batches == 1)
    many = [f"{i} {'x' * 100}" for i in range(500)]
    with pytest.raises(QueueFull):
        await bench.scorer.score(query(*many, timeout_s=9))
    assert bench.text.tokenized == ["q", "1"]
    bench.model.release()
    await running


async def test_the_times_add_up(bench: Bench) -> None:
    times = (await bench.scorer.score(query("70"))).times
    assert times.encode_s + times.queue_s + times.inference_s == times.total_s


async def test_long_requests_are_scored_like_short_ones(bench: Bench) -> None:
    text = "42 " + "x" * INLINE_MAX_CHARS
    answer = await bench.scorer.score(query(text))
    assert answer.scores[0].score == 0.42


async def test_each_ad_is_read_with_its_own_query_and_each_query_once(bench: Bench) -> None:
    asked = several("1", "22", "1", "333", texts=["70", "50", "30", "30"])
    answer = await bench.scorer.score(asked)
    assert [ad.score for ad in answer.scores] == [0.7, 0.5, 0.3, 0.3]
    pairs = [pair for batch in bench.model.batches for pair in batch]
    assert sorted((pair.logit, pair.length_tokens) for pair in pairs) == [
        (30, 3),
        (30, 5),
        (50, 4),
        (70, 3),
    ]
    assert bench.text.tokenized == ["1", "22", "333", "70", "50", "30", "30"]


async def test_a_request_with_several_queries_is_admitted_as_one(bench: Bench) -> None:
    bench.model.hold()
    running = asyncio.ensure_future(bench.scorer.score(query("1", timeout_s=9)))
    await until(lambda: bench.batcher.running_batches == 1)
    with pytest.raises(QueueFull):
        await bench.scorer.score(several(*map(str, range(500)), texts=["1"] * 500, timeout_s=9))
    assert bench.batcher.queued_pairs == 0
    bench.model.release()
    await running


async def test_details_are_the_margins_and_the_tokens_that_were_computed(cached: Bench) -> None:
    await cached.scorer.score(query("70"))
    prepared = cached.scorer.prepare(query("70", "50", "50", "9"), cached.clock.now_s())
    await cached.scorer.complete(prepared)
    details = cached.scorer.details(prepared)
    assert details.margins.tolist() == [70, 50, 50, 9]
    assert details.computed_tokens == len("q50") + len("q9")


class Turns:
    """Counts the turns of the event loop."""

    def __init__(self) -> None:
        self.now = 0
        self._task = asyncio.ensure_future(self._count())

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.now += 1

    def end(self) -> None:
        self._task.cancel()


async def test_a_large_request_is_encoded_in_steps_between_which_others_have_their_turn(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns, joined_in = Turns(), list[int]()
    join = bench.text.join

    def noted(query_ids: NDArray[np.int32], ad_ids: NDArray[np.int32]) -> FakePair:
        joined_in.append(turns.now)
        return join(query_ids, ad_ids)

    monkeypatch.setattr(bench.text, "join", noted)
    await until(lambda: turns.now > 0)
    n_ads = 3 * PAIRS_A_STEP + 1
    answer = await bench.scorer.score(query(*map(str, range(n_ads)), timeout_s=60))
    turns.end()
    assert [ad.score for ad in answer.scores] == [number / 100 for number in range(n_ads)]
    assert len(joined_in) == n_ads
    assert max(joined_in.count(turn) for turn in set(joined_in)) == PAIRS_A_STEP


async def test_a_pair_can_be_seen_without_being_scored(bench: Bench) -> None:
    seen = await bench.scorer.see("q", Ad("a", text="70"))
    assert (seen.query.text, seen.ad.text) == ("q", "70")
    assert bench.model.batches == []
