"""All pairs or an error, with a model that fails or is late on command."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from fastapi import FastAPI, Request
from prometheus_client import CollectorRegistry

from service.api.compatible.calls import Call
from service.api.compatible.dialects import TEI, TextTooLong
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.recording import begin, record_of
from service.api.state import RequestLimits, ServiceState, Serving
from service.domain import PairStatus, Priority
from service.errors import ClientGone, DeadlineExceeded, InferenceFailed, NotReady
from service.metrics.all_metrics import Metrics
from service.scorer import PAIRS_A_STEP, Scorer
from tests.fakes import FakePair, until
from tests.service.scorer_bench import Bench

pytestmark = pytest.mark.anyio


class Caller:
    """Waits for its answer until it leaves."""

    def __init__(self) -> None:
        self.bench = Bench(cache_bytes=2**20)
        limits = RequestLimits(10_000, 10.0, 1_000, default_timeout_s=1.0, max_timeout_s=60.0)
        metrics = Metrics(CollectorRegistry(), [], [])
        serving = Serving(self.bench.scorer, {"n": "m"})
        self.state = ServiceState(metrics, limits, self.bench.clock, serving)
        self.left = asyncio.Event()
        app = FastAPI()
        app.state.service = self.state
        scope: dict[str, Any] = {"type": "http", "headers": [], "app": app}
        request = Request(scope, self._receive)
        self.call = Call(request, self.state, begin(request, "/rerank").started_s, TEI)

    async def _receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def pairs(self, status: PairStatus) -> float | None:
        registry = self.state.metrics.registry
        return registry.get_sample_value("adrel_pairs_total", {"status": status.value})


@pytest.fixture
async def caller() -> AsyncIterator[Caller]:
    made = Caller()
    yield made
    made.bench.model.release()
    await made.bench.batcher.drain(timeout_s=30)


async def test_scores_logits_and_tokens_come_in_the_order_of_the_texts(caller: Caller) -> None:
    scored = await score_pairs(caller.call, Asked(["q"], ["70", "5", "99"]))
    assert scored.scores == [0.7, 0.05, 0.99]
    assert scored.margins == [70, 5, 99]
    assert scored.computed_tokens == 8
    assert scored.model == {"n": "m"}
    record = record_of(caller.call.request)
    assert (record.n_ads, record.computed_tokens, len(record.scores)) == (3, 8, 3)
    json.dumps([scored.scores, scored.margins])


async def test_one_failed_pair_fails_the_request_and_says_how_many(caller: Caller) -> None:
    caller.bench.model.fail_on = lambda pairs: any(pair.logit == 13 for pair in pairs)
    asked = Asked(["q"], ["13", "70 long long", "50 long long"])
    with pytest.raises(InferenceFailed, match="failed on 1 of 3 pairs"):
        await score_pairs(caller.call, asked)
    assert caller.pairs(PairStatus.FAILED) == 1
    assert caller.pairs(PairStatus.OK) == 2


async def test_pairs_missing_at_the_deadline_make_the_request_late(caller: Caller) -> None:
    bench = caller.bench

    def hold_the_next(_: Sequence[FakePair]) -> bool:
        bench.model.hold()
        return False

    bench.model.fail_on = hold_the_next
    task = asyncio.ensure_future(score_pairs(caller.call, Asked(["q"], ["70", "50", "30", "20"])))
    await until(lambda: len(bench.model.batches) == 2 and len(bench.done) == 1)
    bench.clock.advance(1.0)
    with pytest.raises(DeadlineExceeded, match="2 of 4 ads had a score within 1000 ms"):
        await task
    assert caller.pairs(PairStatus.OK) == 2
    assert caller.pairs(PairStatus.DEADLINE) == 2


async def test_a_request_that_a_drain_cuts_off_is_not_late(caller: Caller) -> None:
    bench = caller.bench

    def hold_the_next(_: Sequence[FakePair]) -> bool:
        bench.model.hold()
        return False

    bench.model.fail_on = hold_the_next
    task = asyncio.ensure_future(score_pairs(caller.call, Asked(["q"], ["70", "50", "30", "20"])))
    await until(lambda: len(bench.model.batches) == 2 and len(bench.done) == 1)
    draining = asyncio.ensure_future(bench.batcher.drain(timeout_s=0.2))
    await asyncio.sleep(0)
    bench.clock.advance(0.2)
    with pytest.raises(NotReady, match="the service stopped before"):
        await task
    bench.model.release()
    assert await draining > 0


async def test_a_caller_that_leaves_stops_costing(caller: Caller) -> None:
    caller.bench.model.hold()
    asked = Asked(["q"], ["1", "2", "3", "4", "5", "6"])
    task = asyncio.ensure_future(score_pairs(caller.call, asked))
    await until(lambda: caller.bench.batcher.queued_pairs > 0)
    caller.left.set()
    with pytest.raises(ClientGone):
        await task
    caller.bench.model.release()
    await until(lambda: caller.bench.batcher.running_batches == 0)
    assert len(caller.bench.model.batches) == 1


async def test_a_drain_that_begins_meanwhile_does_not_lose_an_accepted_request(
    caller: Caller,
) -> None:
    caller.bench.model.hold()
    task = asyncio.ensure_future(score_pairs(caller.call, Asked(["q"], ["70"])))
    await until(lambda: caller.bench.batcher.running_batches == 1)
    caller.state.draining = True
    caller.bench.model.release()
    assert (await task).scores == [0.7]
    with pytest.raises(NotReady, match="draining"):
        await score_pairs(caller.call, Asked(["q"], ["70"]))


async def test_what_was_cut_is_refused_where_cutting_is_forbidden(caller: Caller) -> None:
    texts = ["70", "50 very long text"]
    assert (await score_pairs(caller.call, Asked(["q"], texts))).scores == [0.7, 0.5]
    with pytest.raises(TextTooLong, match=r"documents\[1\]: does not fit"):
        await score_pairs(caller.call, Asked(["q"], texts, may_cut=False))


async def test_bulk_work_is_queued_as_such(caller: Caller) -> None:
    caller.bench.model.hold()
    asked = Asked(["q"], ["1", "2", "3"], priority=Priority.BATCH)
    task = asyncio.ensure_future(score_pairs(caller.call, asked))
    await until(lambda: bool(caller.bench.scorer._in_flight))
    (job, *_) = caller.bench.scorer._in_flight._jobs.values()
    assert {claim.request.priority for claim in job.claims} <= {Priority.BATCH}
    assert job._subscribers[0][0].priority is Priority.BATCH
    caller.bench.model.release()
    await task


@pytest.mark.parametrize(
    ("queries", "expected"), [(["ab"], 2 * 3 + 6), (["ab", "c", "def"], 6 + 6)]
)
def test_a_query_for_all_texts_counts_once_for_each(queries: list[str], expected: int) -> None:
    assert Asked(queries, ["x", "yy", "zzz"]).n_chars == expected


async def test_others_have_their_turn_amid_a_large_request_that_is_all_cached(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Asked(["q"], [str(number) for number in range(PAIRS_A_STEP + 1)])
    for _ in range(2):  # of two pairs that get the same place in the cache at once, one is lost
        await score_pairs(caller.call, asked)
    order: list[str] = []
    prepare, collect = Scorer.prepare, Scorer.collect

    def prepared(*arguments: Any) -> Any:  # noqa: ANN401  # handed on as it is
        order.append("prepare")
        asyncio.get_running_loop().call_soon(order.append, "another")
        return prepare(*arguments)

    def collected(*arguments: Any) -> Any:  # noqa: ANN401  # handed on as it is
        order.append("collect")
        return collect(*arguments)

    monkeypatch.setattr(Scorer, "prepare", prepared)
    monkeypatch.setattr(Scorer, "collect", collected)
    scored = await score_pairs(caller.call, asked)
    assert scored.computed_tokens == 0
    assert order == ["prepare", "another", "collect"]
