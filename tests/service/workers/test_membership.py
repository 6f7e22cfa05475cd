from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from service.api.state import Reloads, RequestLimits, ServiceState
from service.domain import ReloadResult
from service.errors import BundleRefused, NotReady, ReloadRunning, ServiceError
from service.metrics.all_metrics import Metrics
from service.model_life.history import ModelHistory, ReloadReport, Tenure
from service.startup_errors import BundleCorrupt
from service.workers.link import Link
from service.workers.membership import Membership

pytestmark = pytest.mark.anyio
DEADLINE_S = 30


class Bench:
    """A worker that has joined, and the supervisor's end of its link."""

    def __init__(self, folder: Path) -> None:
        self.ours, its = socket.socketpair()
        registry = CollectorRegistry()
        self.state = ServiceState(Metrics(registry, [], []), RequestLimits(1, 1, 1, 1, 1))
        self.local: ReloadReport | ServiceError = ReloadReport(ReloadResult.CHANGED, 0.0, 0.5)
        self.state.reloads = Reloads(self._reload, lambda: ModelHistory(Tenure("m", "2", "b", 0.0)))
        self.member = Membership(self.state, its, folder)
        self.heard: asyncio.Queue[str] = asyncio.Queue()
        self.orphaned = asyncio.Event()
        self.answer: Any = None

    async def _reload(self) -> ReloadReport:
        if isinstance(self.local, ServiceError):
            raise self.local
        return self.local

    async def start(self) -> None:
        async def alive(_: object) -> None:
            await self.heard.put("alive")

        async def listening(_: object) -> None:
            await self.heard.put("listening")

        async def answer(_: object) -> Any:  # noqa: ANN401  # any JSON
            return self.answer

        async def unfit(why: object) -> None:
            await self.heard.put(f"unfit: {why}")

        handlers = {
            "unfit": unfit,
            "alive": alive,
            "listening": listening,
            "reload": answer,
            "metrics": answer,
        }
        self.link = await Link.over(self.ours, handlers)
        self.reading = asyncio.create_task(self.link.run())
        await self.member.join(self.orphaned.set)
        self.member.listens()

    async def reload(self) -> ReloadReport:
        assert self.state.reloads is not None
        return await self.state.reloads.reload()


@asynccontextmanager
async def joined(folder: Path) -> AsyncIterator[Bench]:
    bench = Bench(folder)
    await bench.start()
    try:
        yield bench
    finally:
        await bench.member.leave()
        await asyncio.wait({bench.reading}, timeout=DEADLINE_S)


async def test_what_only_a_new_process_can_cure_is_told_once_and_no_sign_of_life_follows(
    tmp_path: Path,
) -> None:
    async with joined(tmp_path) as bench:
        bench.state.stuck_workers = lambda: 1
        async with asyncio.timeout(DEADLINE_S):
            while not (heard := await bench.heard.get()).startswith("unfit"):
                pass
        assert heard == "unfit: 1 of 1 inference threads are stuck"
        assert bench.heard.empty()


async def test_it_gives_signs_of_life_and_says_when_it_listens(tmp_path: Path) -> None:
    async with joined(tmp_path) as bench:
        heard = {await asyncio.wait_for(bench.heard.get(), DEADLINE_S) for _ in range(2)}
        assert heard == {"alive", "listening"}


async def test_the_supervisor_hears_how_a_reload_of_this_worker_ended(tmp_path: Path) -> None:
    async with joined(tmp_path) as bench:
        told = {"result": "changed", "took_ms": 500.0, "version": "2"}
        assert await bench.link.ask("reload") == told
        bench.local = BundleRefused(BundleCorrupt("model.onnx is missing"))
        bench.local.__cause__ = BundleCorrupt("model.onnx is missing")
        assert await bench.link.ask("reload") == {"refused": "model.onnx is missing"}


async def test_who_asks_here_for_a_reload_hears_of_all_workers(tmp_path: Path) -> None:
    async with joined(tmp_path) as bench:
        bench.answer = [{"worker": 1, "result": "unchanged"}, {"worker": 2, "result": "replaced"}]
        report = await bench.reload()
        assert report.result is ReloadResult.CHANGED
        assert list(report.workers) == bench.answer
        bench.answer = {"refused": "no bundle at x"}
        with pytest.raises(BundleRefused, match="serves on: no bundle at x"):
            await bench.reload()


async def test_a_reload_beside_another_one_is_refused_and_counted(tmp_path: Path) -> None:
    async with joined(tmp_path) as bench:
        bench.answer = "running"
        with pytest.raises(ReloadRunning):
            await bench.reload()
        labels = {"result": "refused"}
        registry = bench.state.metrics.registry
        assert registry.get_sample_value("adrel_reloads_total", labels) == 1


async def test_a_scrape_here_shows_the_series_of_all(tmp_path: Path) -> None:
    async with joined(tmp_path) as bench:
        assert bench.state.all_series is not None
        bench.answer = "all 1.0\n"
        assert await bench.state.all_series() == b"all 1.0\n"
        series = await bench.link.ask("series")
        assert "adrel_worker_processes" in [name for name, *_ in series]


async def test_without_the_supervisor_it_ends_its_folder_goes_and_a_scrape_gets_no_lesser_sums(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "adrel"
    folder.mkdir()
    async with joined(folder) as bench:
        bench.link.close()
        await asyncio.wait_for(bench.orphaned.wait(), DEADLINE_S)
        assert not folder.exists()
        assert bench.state.all_series is not None
        with pytest.raises(NotReady, match="supervisor"):
            await bench.state.all_series()
        with pytest.raises(ServiceError):
            await bench.reload()
