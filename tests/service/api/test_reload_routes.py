from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api import admin_routes, error_handlers, models_route
from service.api.state import Reloads, RequestLimits, ServiceState, Serving
from service.domain import ReloadResult
from service.errors import BundleRefused, ReloadRunning, ServiceError
from service.metrics.all_metrics import Metrics
from service.model_life.history import ModelHistory, ReloadReport, Tenure
from service.startup_errors import BundleMissing
from tests.service.scorer_bench import Bench as ScorerBench

pytestmark = pytest.mark.anyio

SECOND = Tenure("m", "2", "bundle-2", since_s=1.5)
FIRST = Tenure("m", "1", "bundle-1", since_s=0.0, until_s=1.5)
CHANGED = ReloadReport(ReloadResult.CHANGED, at_s=1.75, took_s=0.25)


class Bench:
    """The operators' routes on an application of their own."""

    def __init__(self) -> None:
        self.outcome: ReloadReport | ServiceError = CHANGED
        self.history = ModelHistory(SECOND, FIRST, CHANGED)
        limits = RequestLimits(10_000, 10.0, 8, default_timeout_s=1.0, max_timeout_s=60.0)
        self.state = ServiceState(Metrics(CollectorRegistry(), [], []), limits)
        self.state.serving = Serving(ScorerBench().scorer, {})
        self.state.reloads = Reloads(self.reload, lambda: self.history)
        app = FastAPI()
        app.state.service = self.state
        app.include_router(admin_routes.router)
        app.include_router(models_route.router)
        error_handlers.install(app, lambda *_: None)
        transport = httpx.ASGITransport(app=app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://admin")

    async def reload(self) -> ReloadReport:
        if isinstance(self.outcome, ServiceError):
            raise self.outcome
        return self.outcome


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    async with made.client:
        yield made


async def test_a_reload_answers_how_it_ended_and_what_serves(bench: Bench) -> None:
    response = await bench.client.post("/admin/reload")
    assert response.status_code == 200
    assert response.json() == {
        "result": "changed",
        "at": "1970-01-01T00:00:01.750+00:00",
        "took_ms": 250.0,
        "serving": {
            "name": "m",
            "version": "2",
            "bundle": "bundle-2",
            "since": "1970-01-01T00:00:01.500+00:00",
        },
    }


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ReloadRunning(), 409, "reload_running"),
        (BundleRefused(BundleMissing(Path("gone"))), 422, "bundle_refused"),
    ],
)
async def test_a_reload_that_did_not_happen_says_why(
    bench: Bench, error: ServiceError, status: int, code: str
) -> None:
    bench.outcome = error
    response = await bench.client.post("/admin/reload")
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert response.json()["error"]["message"] == error.message


async def test_only_a_post_reloads(bench: Bench) -> None:
    assert (await bench.client.get("/admin/reload")).status_code == 405


async def test_nothing_is_reloaded_while_the_first_model_loads_or_a_drain_has_begun(
    bench: Bench,
) -> None:
    bench.state.draining = True
    assert (await bench.client.post("/admin/reload")).status_code == 503
    bench.state.draining, bench.state.serving = False, None
    assert (await bench.client.post("/admin/reload")).status_code == 503
    assert (await bench.client.get("/v1/models")).status_code == 503


async def test_the_history_tells_of_both_models_and_the_last_reload(bench: Bench) -> None:
    answer = (await bench.client.get("/v1/models")).json()
    assert answer["serving"]["version"] == "2"
    assert answer["previous"] == {
        "name": "m",
        "version": "1",
        "bundle": "bundle-1",
        "since": "1970-01-01T00:00:00.000+00:00",
        "until": "1970-01-01T00:00:01.500+00:00",
    }
    assert answer["last_reload"]["result"] == "changed"


async def test_clients_of_openai_and_vllm_find_the_model_that_serves(bench: Bench) -> None:
    answer = (await bench.client.get("/v1/models")).json()
    assert answer["object"] == "list"
    assert answer["data"] == [{"id": "m", "object": "model", "created": 1, "owned_by": "adrel"}]


async def test_before_the_first_reload_there_is_nothing_to_tell_of(bench: Bench) -> None:
    bench.history = ModelHistory(SECOND)
    answer: dict[str, Any] = (await bench.client.get("/v1/models")).json()
    assert (answer["previous"], answer["last_reload"]) == (None, None)


async def test_why_a_reload_failed_is_not_told_to_everyone(bench: Bench) -> None:
    failed = ReloadReport(ReloadResult.FAILED, 2.0, 0.1, why="no bundle at /secret")
    bench.history = ModelHistory(SECOND, None, failed)
    response = await bench.client.get("/v1/models")
    assert response.json()["last_reload"]["result"] == "failed"
    assert "secret" not in response.text
