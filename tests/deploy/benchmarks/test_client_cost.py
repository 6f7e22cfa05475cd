from __future__ import annotations

import asyncio

import httpx
import pytest

from deploy.benchmarks.bench_client import CALLERS, LEAN, measure
from deploy.benchmarks.mixed_pairs import MixedRequest
from tests.service.client.answering_server import AnsweringServer, answering_server

REQUESTS = [MixedRequest("shoe", ["red shoe", "blue bag"]), MixedRequest("bag", ["a", "b"])]


def address(server: AnsweringServer) -> tuple[str, int]:
    url = httpx.URL(server.url)
    return url.host, url.port or 80


def test_each_caller_asks_as_often_and_has_its_own_connection() -> None:
    with answering_server() as server:
        costs = asyncio.run(measure(address(server), REQUESTS, rounds=6))
    assert tuple(costs) == CALLERS
    assert len(server.ports) == 3 * (6 + 20)
    assert {server.ports.count(port) for port in server.ports} == {6 + 20}
    assert costs[LEAN].over_lean_p50_ms == 0
    for cost in costs.values():
        assert 0 < cost.p50_ms <= cost.p99_ms
        assert cost.cpu_ms > 0


def test_an_answer_that_is_missing_is_no_figure() -> None:
    with answering_server() as server:
        server.dropped = (0,)
        with pytest.raises(RuntimeError, match="without all scores"):
            asyncio.run(measure(address(server), REQUESTS, rounds=1))
