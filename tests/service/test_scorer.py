from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from service.batching.batcher import Batcher
from service.batching.planner import BatchLimits
from service.domain import Ad, PairStatus, ScoreQuery
from service.errors import DeadlineExceeded, InferenceFailed, QueueFull
from service.scorer import ENCODE_INLINE_MAX_CHARS, Scorer
from tests.fakes import FakeClock, FakeModel, FakePair, until

pytestmark = pytest.mark.anyio


class FakeText:
    """An ad's text is its logit; its length is that of the text."""

    def encode(self, query: str, ads: Sequence[Ad]) -> list[FakePair]:
        return [
            FakePair(len(query) + len(ad.text), float(ad.text.split()[0]), len(ad.text) > 9)
            for ad in ads
        ]

    def to_scores(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(logits[:, 0].astype(np.float64) / 100)


class Bench:
    def __init__(self) -> None:
        self.clock, self.model = FakeClock(), FakeModel()
        self.batcher: Batcher[FakePair] = Batcher(
            self.model,
            BatchLimits(max_pairs=2, max_padded_tokens=10**6, max_padding_ratio=0.9),
            workers=1,
            max_waiting_pairs=20,
            clock=self.clock,
            on_batch=lambda _: None,
        )
        self.text = FakeText()
        self.scorer: Scorer[FakePair] = Scorer(self.text, self.batcher, self.clock)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    yield made
    made.model.release()
    await made.batcher.drain(timeout_s=30)


def query(*texts: str, timeout_s: float = 1.0, min_score: float | None = None) -> ScoreQuery:
    ads = tuple(Ad(f"ad-{i}", text=text) for i, text in enumerate(texts))
    return ScoreQuery("r1", "q", ads, timeout_s, min_score=min_score)


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


async def test_at_the_deadline_the_answer_leaves_with_the_scores_that_are_there(
    bench: Bench,
) -> None:
    task = asyncio.ensure_future(bench.scorer.score(query("70", "50", "30", "20")))
    await until(lambda: len(bench.model.batches) >= 1)
    bench.model.hold()  # the next batch hangs
    await until(lambda: len(bench.model.batches) >= 2)
    await until(lambda: bench.batcher.queued_pairs == 0)
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


async def test_the_deadline_holds_while_a_long_text_is_encoded(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    encode = bench.text.encode

    def slow(text: str, ads: Sequence[Ad]) -> list[FakePair]:
        assert gate.wait(timeout=30)
        return encode(text, ads)

    monkeypatch.setattr(bench.text, "encode", slow)
    long_text = "42 " + "x" * ENCODE_INLINE_MAX_CHARS
    task = asyncio.ensure_future(bench.scorer.score(query(long_text, timeout_s=0.5)))
    await until(lambda: bool(bench.clock.timers))
    bench.clock.advance(0.5)
    with pytest.raises(DeadlineExceeded):
        await task
    gate.set()
    assert bench.model.batches == []


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
    with pytest.raises(QueueFull):
        await bench.scorer.score(query(*["1"] * 21))
    assert bench.batcher.queued_pairs == 0
    assert not bench.clock.timers


async def test_the_times_add_up(bench: Bench) -> None:
    times = (await bench.scorer.score(query("70"))).times
    assert times.encode_s + times.queue_s + times.inference_s == times.total_s


async def test_long_requests_are_scored_like_short_ones(bench: Bench) -> None:
    text = "42 " + "x" * ENCODE_INLINE_MAX_CHARS
    answer = await bench.scorer.score(query(text))
    assert answer.scores[0].score == 0.42
