from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest
from prometheus_client import CollectorRegistry

from service.api import error_handlers
from service.api.admin import create_admin_app
from service.api.compatible import open_inference
from service.api.state import RequestLimits, ServiceState, Serving
from service.metrics.all_metrics import Metrics
from tests.service.scorer_bench import Bench as ScorerBench

pytestmark = pytest.mark.anyio


class Bench:
    """The probes of a service that has two workers."""

    def __init__(self) -> None:
        self.stuck = 0
        limits = RequestLimits(10_000, 10.0, 8, default_timeout_s=1.0, max_timeout_s=60.0)
        self.state = ServiceState(Metrics(CollectorRegistry(), [], []), limits)
        self.state.serving = Serving(ScorerBench().scorer, {})
        self.state.stuck_workers = lambda: self.stuck
        self.state.usable_workers = lambda: 2 - self.stuck
        app = create_admin_app(self.state, [open_inference.router])
        error_handlers.install(app, lambda *_: None)
        transport = httpx.ASGITransport(app=app)
        self.client = httpx.AsyncClient(transport=transport, base_url="http://admin")

    async def status(self, path: str) -> int:
        return (await self.client.get(path)).status_code


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    made = Bench()
    async with made.client:
        yield made


async def test_a_sound_service_is_live_and_ready(bench: Bench) -> None:
    assert await bench.status("/livez") == await bench.status("/readyz") == 200
    assert await bench.status("/v2/health/live") == 200


async def test_a_stuck_worker_asks_for_a_restart_while_the_other_one_scores(bench: Bench) -> None:
    bench.stuck = 1
    answer = await bench.client.get("/livez")
    assert answer.status_code == 503
    error = answer.json()["error"]
    assert error["code"] == "not_live"
    assert error["message"] == ("not live: 1 of 2 inference threads are stuck; restart the process")
    assert await bench.status("/readyz") == 200
    foreign = await bench.client.get("/v2/health/live")
    assert (foreign.status_code, foreign.json()) == (503, {"error": error["message"]})


async def test_with_no_worker_left_it_is_not_ready_either(bench: Bench) -> None:
    bench.stuck = 2
    answer = await bench.client.get("/readyz")
    assert answer.status_code == 503
    assert "every inference thread is stuck" in answer.text
    bench.stuck = 0
    assert await bench.status("/readyz") == await bench.status("/livez") == 200
