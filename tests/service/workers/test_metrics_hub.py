from __future__ import annotations

from typing import Any, cast

import pytest
from prometheus_client import CollectorRegistry, Counter

from service.workers.link import Link, LinkLost
from service.workers.metrics_hub import MetricsHub
from tests.service.workers.fakes import FakeLink

pytestmark = pytest.mark.anyio


def counted(value: float) -> list[Any]:
    """A worker's series."""
    gauge = ["adrel_worker_processes", "gauge", "", [["adrel_worker_processes", [], 1.0]]]
    return [["c", "counter", "Of c.", [["c_total", [], value]]], gauge]


class Bench:
    """A hub and two workers."""

    def __init__(self) -> None:
        registry = CollectorRegistry()
        Counter("own", "The supervisor's.", registry=registry).inc()
        self.hub = MetricsHub(registry)
        self.workers = {number: FakeLink(series=counted(10.0 * number)) for number in (1, 2)}
        for number in self.workers:
            self.hub.joined(self.link(number))

    def link(self, number: int) -> Link:
        return cast("Link", self.workers[number])

    async def told(self) -> dict[str, float]:
        """Each series of the exposition."""
        content = await self.hub.exposition({number: self.link(number) for number in self.workers})
        lines = [line.split() for line in content.decode().splitlines() if line[0] != "#"]
        return {name: float(value) for name, value in lines}


async def test_the_workers_series_and_the_supervisors_own_are_one_exposition() -> None:
    assert await Bench().told() == {"c_total": 30, "adrel_worker_processes": 2, "own_total": 1}


@pytest.mark.parametrize("trouble", [TimeoutError(), LinkLost()])
async def test_a_worker_that_does_not_answer_stands_as_it_was(trouble: Exception) -> None:
    bench = Bench()
    await bench.told()
    bench.workers[1].answers["series"] = trouble
    bench.workers[2].answers["series"] = counted(21)
    assert (await bench.told())["c_total"] == 31


async def test_the_count_of_a_worker_that_has_ended_stays_and_its_process_does_not() -> None:
    bench = Bench()
    await bench.told()
    bench.hub.left(bench.link(1))
    del bench.workers[1]
    assert await bench.told() == {"c_total": 30, "adrel_worker_processes": 1, "own_total": 1}
    bench.workers[1] = FakeLink(series=counted(1))
    bench.hub.joined(bench.link(1))
    assert (await bench.told())["c_total"] == 31


async def test_an_answer_of_one_that_has_ended_meanwhile_counts_for_nothing() -> None:
    bench = Bench()
    await bench.told()
    bench.hub.left(bench.link(1))
    assert (await bench.told())["c_total"] == 30
