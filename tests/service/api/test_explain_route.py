from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import httpx
import numpy as np
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api import error_handlers, explain_route
from service.api.explain_schemas import MAX_TEXT_CHARS, ExplainResponse
from service.api.state import RequestLimits, ServiceState, Serving
from service.domain import Ad, AdScore, PairStatus, ScoreAnswer, ScoreQuery, StageTimes
from service.metrics.all_metrics import Metrics
from service.pair_seen import PairSeen, Side, SideSeen, Token, Word
from service.scorer import Scorer
from tests.fakes import FakeClock

pytestmark = pytest.mark.anyio

ASKED = {"query": "buy", "ad": {"title": "red bag"}}


class FakeScorer:
    """Reads each side as words between spaces; answers with the scores that it was given."""

    def __init__(self, *scores: float | PairStatus, was_cut_off: bool = False) -> None:
        self._scores = scores
        self._was_cut_off = was_cut_off
        self.asked: list[ScoreQuery] = []

    async def see(self, query: str, ad: Ad) -> PairSeen:
        special = Token("[CLS]", 1, 0, Side.SPECIAL)
        sides = [SideSeen(text, tuple(_words(text)), len(text)) for text in (query, ad.title)]
        return PairSeen((special, Token("buy", 7, 0, Side.QUERY, 0, 3)), *sides)

    def prepare(self, query: ScoreQuery, _: float) -> Any:  # noqa: ANN401  # a stand-in
        self.asked.append(query)
        return SimpleNamespace(missing=(), computed_tokens=0)

    def collect(self, _: object) -> ScoreAnswer:
        ads = tuple(
            AdScore("", None, score, truncated=False)
            if isinstance(score, PairStatus)
            else AdScore("", score, PairStatus.OK, truncated=False)
            for score in self._scores
        )
        times = StageTimes(0.001, 0.002, 0.003, 0.006)
        return ScoreAnswer(self.asked[-1].request_id, ads, times, self._was_cut_off)

    def details(self, _: object) -> Any:  # noqa: ANN401  # a stand-in
        return SimpleNamespace(margins=np.arange(len(self._scores), dtype=np.float64))


def _words(text: str) -> Sequence[Word]:
    at, words = 0, []
    for word in text.split():
        start = text.index(word, at)
        at = start + len(word)
        words.append(Word(word, start, at))
    return words


def state_with(scorer: FakeScorer, max_ads: int = 512) -> ServiceState:
    outcomes = ["ok", "partial", *error_handlers.error_codes()]
    metrics = Metrics(CollectorRegistry(), [explain_route.EXPLAIN_ROUTE], outcomes)
    limits = RequestLimits(100_000, 1, max_ads, default_timeout_s=1, max_timeout_s=2)
    model = {"model": {"name": "m", "version": "v"}}
    serving = Serving(cast("Scorer[Any]", scorer), model)
    return ServiceState(metrics, limits, FakeClock(), serving)


async def asked(state: ServiceState, body: object = ASKED) -> httpx.Response:
    app = FastAPI()
    app.state.service = state
    app.include_router(explain_route.router)
    error_handlers.install(app)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://adrel") as client:
        return await client.post("/v1/explain", json=body)


def counted(state: ServiceState, outcome: str) -> float | None:
    labels = {"route": "/v1/explain", "outcome": outcome}
    return state.metrics.registry.get_sample_value("adrel_requests_total", labels)


async def test_it_tells_tokens_words_and_what_each_word_does() -> None:
    state = state_with(FakeScorer(0.75, 0.5, 0.25, 0.875))
    response = await asked(state, {**ASKED, "request_id": "r-1"})
    answer = response.json()
    ExplainResponse.model_validate(answer)
    assert response.headers["X-Request-Id"] == answer["request_id"] == "r-1"
    assert (answer["score"], answer["logit"]) == (0.75, 0)
    assert [(w["text"], w["status"], w["score_drop"], w["logit_drop"])
            for side in ("query", "ad") for w in answer[side]["words"]] == [
        ("buy", "ok", -0.125, -3),
        ("red", "ok", 0.25, -1),
        ("bag", "ok", 0.5, -2),
    ]  # fmt: skip
    assert answer["tokens"][1] == {
        "position": 1, "token": "buy", "id": 7, "segment": 0, "side": "query", "start": 0, "end": 3
    }  # fmt: skip
    assert counted(state, "ok") == 1


async def test_words_that_were_not_scored_in_time_are_null_and_the_answer_is_partial() -> None:
    state = state_with(FakeScorer(0.75, PairStatus.DEADLINE, 0.25, 0.875))
    answer = (await asked(state)).json()
    ExplainResponse.model_validate(answer)
    [red, bag] = answer["ad"]["words"]
    assert (red["status"], red["score_drop"], red["logit_drop"]) == ("deadline", None, None)
    assert bag["score_drop"] == 0.5
    assert counted(state, "partial") == 1


async def test_a_pair_that_a_stop_left_without_a_score_is_not_late() -> None:
    state = state_with(FakeScorer(PairStatus.DEADLINE, 0.5, 0.25, 0.875, was_cut_off=True))
    assert (await asked(state)).json()["error"]["code"] == "not_ready"
    assert counted(state, "not_ready") == 1


async def test_words_past_the_limit_of_a_request_are_told_as_not_explained() -> None:
    scorer = FakeScorer(0.75, 0.5, 0.25)
    answer = (await asked(state_with(scorer, max_ads=3))).json()
    ExplainResponse.model_validate(answer)
    assert len(scorer.asked[0].ads) == 3
    assert [word["status"] for word in answer["ad"]["words"]] == ["ok", "not_explained"]


@pytest.mark.parametrize(
    ("ended", "status", "code"),
    [
        (PairStatus.DEADLINE, 504, "deadline_exceeded"),
        (PairStatus.FAILED, 500, "inference_failed"),
    ],
)
async def test_without_the_pairs_own_score_there_is_nothing_to_tell(
    ended: PairStatus, status: int, code: str
) -> None:
    state = state_with(FakeScorer(ended, 0.5, 0.25, 0.75))
    response = await asked(state)
    assert (response.status_code, response.json()["error"]["code"]) == (status, code)
    assert counted(state, code) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"ad": {"title": "bag"}}, "query"),
        ({"query": " ", "ad": {"title": "bag"}}, "query"),
        ({"query": "q" * (MAX_TEXT_CHARS + 1), "ad": {"title": "bag"}}, "query"),
        ({"query": "buy", "ad": {"text": "b" * (MAX_TEXT_CHARS + 1)}}, "ad.text"),
        ({"query": "buy", "ad": {"title": "b", "description": "b" * 8_001}}, "ad.description"),
        ({"query": "buy", "ad": {}}, "ad"),
        ({"query": "buy", "ad": {"title": "bag", "text": "bag"}}, "ad"),
        ({**ASKED, "timeout_ms": 0}, "timeout_ms"),
        ({**ASKED, "timeout_ms": 3_000}, "timeout_ms"),
        ({**ASKED, "priority": "auction"}, "priority"),
    ],
)
async def test_a_faulty_field_is_named(body: object, field: str) -> None:
    state = state_with(FakeScorer(0.5))
    response = await asked(state, body)
    assert (response.status_code, response.json()["error"]["details"][0]["field"]) == (422, field)
    assert counted(state, "invalid_request") == 1


async def test_made_up_pairs_are_not_counted_as_scores_of_the_traffic() -> None:
    state = state_with(FakeScorer(0.75, 0.5, 0.25, 0.875))
    await asked(state)
    value = state.metrics.registry.get_sample_value
    assert value("adrel_pairs_total", {"status": "ok"}) == 4
    assert value("adrel_score_count") == 0


async def test_a_service_that_drains_says_so() -> None:
    state = state_with(FakeScorer(0.5))
    state.draining = True
    assert (await asked(state)).status_code == 503
    assert counted(state, "not_ready") == 1
