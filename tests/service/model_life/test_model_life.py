from __future__ import annotations

import asyncio
import gc
import itertools
import logging
import threading
import weakref
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.batching.batcher import Batcher
from service.batching.pair_job import PairJob, PendingRequest
from service.domain import PairStatus, Priority, ReloadResult
from service.errors import BundleRefused, ReloadRunning, ServiceError
from service.model_life.loaded_model import LoadedModel, ModelSource
from service.model_life.model_life import ModelLife
from service.model_life.reload_on_signal import ReloadOnSignal
from service.scoring.encoding import EncodedPair
from service.startup_errors import BundleMissing
from tests.bundle_variants import link
from tests.fakes import FakeClock, until
from tests.service.model_life.conftest import LIMITS

pytestmark = pytest.mark.anyio


class Bench:
    """A life whose loader does what the test says, on a clock of its own."""

    def __init__(self, source: ModelSource) -> None:
        self.source, self.clock = source, FakeClock()
        self.serves: list[str] = []
        self.results: list[ReloadResult] = []
        self.loads = 0
        self.gate = threading.Event()
        self.gate.set()
        self.error: Exception | None = None
        self.batcher: Batcher[EncodedPair] = Batcher(
            LIMITS, workers=1, max_queue_s=9.0, clock=self.clock, on_batch=lambda _: None
        )
        unix_s = itertools.count(1000)
        first = source.load()
        assert first is not None
        self.first = weakref.ref(first)
        self.life = ModelLife(
            first,
            self.load,
            self.serve,
            self.batcher,
            self.clock,
            on_reload=self.results.append,
            finish_timeout_s=60,
            unix_s=lambda: next(unix_s),
        )

    def load(self, before: LoadedModel) -> LoadedModel | None:
        self.loads += 1
        assert self.gate.wait(timeout=30)
        if self.error is not None:
            raise self.error
        return self.source.load(before)

    def serve(self, model: LoadedModel, since_s: float) -> None:
        del since_s
        self.serves.append(model.bundle.path.name)

    def ask(self, model: LoadedModel) -> PendingRequest:
        """Queue a pair by the model."""
        request = PendingRequest(1, model.bundle.n_logits, 1e6, Priority.AUCTION)
        [pair] = model.bundle.encoder.encode("red", ["shoe"])
        job = PairJob(pair, model.generation)
        job.subscribe(request, 0)
        self.batcher.submit(request, [job])
        return request


@pytest.fixture
async def bench(source: ModelSource) -> AsyncIterator[Bench]:
    made = Bench(source)
    yield made
    made.gate.set()
    await made.batcher.drain(timeout_s=30)


async def test_the_first_model_serves_at_once(bench: Bench, one: Path) -> None:
    assert bench.serves == [one.name]
    assert bench.life.history.serving.since_s == 1000
    assert bench.life.history.previous is None
    assert bench.life.history.last_reload is None


async def test_another_model_takes_over_and_the_history_says_when(
    bench: Bench, one: Path, other: Path
) -> None:
    link(other, bench.source.path)
    report = await bench.life.reload()
    assert report.result is ReloadResult.CHANGED
    assert bench.serves == [one.name, other.name]
    history = bench.life.history
    assert history.serving.bundle == other.name
    assert history.previous is not None
    assert history.previous.version != history.serving.version
    assert history.previous.until_s == history.serving.since_s == 1001
    assert history.last_reload == report
    assert bench.results == [ReloadResult.CHANGED]


async def test_the_same_version_changes_nothing_and_says_so(bench: Bench, one: Path) -> None:
    report = await bench.life.reload()
    assert report.result is ReloadResult.UNCHANGED
    assert bench.serves == [one.name]
    assert bench.life.history.previous is None
    assert bench.results == [ReloadResult.UNCHANGED]


async def test_a_bundle_that_cannot_be_served_leaves_the_old_model_and_says_why(
    bench: Bench, one: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench.error = BundleMissing(Path("gone"))
    with caplog.at_level(logging.ERROR), pytest.raises(BundleRefused, match="no bundle at gone"):
        await bench.life.reload()
    assert "no bundle at gone" in caplog.records[-1].why  # type: ignore[attr-defined]  # by extra
    assert bench.serves == [one.name]
    assert bench.results == [ReloadResult.FAILED]
    assert bench.life.history.last_reload is not None
    assert bench.life.history.last_reload.result is ReloadResult.FAILED
    bench.error = None
    assert (await bench.life.reload()).result is ReloadResult.UNCHANGED


async def test_a_fault_of_ours_leaves_the_old_model_too(
    bench: Bench, one: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bench.error = ZeroDivisionError()
    with caplog.at_level(logging.CRITICAL), pytest.raises(ServiceError, match="see the service"):
        await bench.life.reload()
    assert bench.serves == [one.name]
    assert bench.results == [ReloadResult.FAILED]


async def test_a_second_reload_is_refused_while_one_runs(bench: Bench) -> None:
    bench.gate.clear()
    running = asyncio.ensure_future(bench.life.reload())
    await until(lambda: bench.loads == 1)
    with pytest.raises(ReloadRunning):
        await bench.life.reload()
    bench.gate.set()
    await running
    assert bench.results == [ReloadResult.REFUSED, ReloadResult.UNCHANGED]


async def test_the_event_loop_goes_on_while_a_model_loads(bench: Bench) -> None:
    bench.gate.clear()
    running = asyncio.ensure_future(bench.life.reload())
    await until(lambda: bench.loads == 1)
    model = bench.first()
    assert model is not None
    request = bench.ask(model)
    await request.done
    assert request.statuses == [PairStatus.OK]
    assert not running.done()
    bench.gate.set()
    await running


async def test_the_old_models_last_pairs_are_waited_for_and_then_it_is_gone(
    bench: Bench, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, held = bench.first(), threading.Event()
    assert model is not None
    run = type(model.bundle.model).logits

    def slow(self: object, pairs: object) -> object:
        assert held.wait(timeout=30)
        return run(self, pairs)  # type: ignore[arg-type]  # the real one behind a gate

    with monkeypatch.context() as patch:
        link(other, bench.source.path)
        bench.gate.clear()
        running = asyncio.ensure_future(bench.life.reload())
        await until(lambda: bench.loads == 1)
        patch.setattr(type(model.bundle.model), "logits", slow)
        request = bench.ask(model)
        await until(lambda: bench.batcher.running_batches == 1)
        patch.undo()
        bench.gate.set()
        await until(lambda: len(bench.serves) == 2)
        assert not running.done()
        held.set()
        assert (await running).result is ReloadResult.CHANGED
        assert request.statuses == [PairStatus.OK]
    del model, request
    await until(lambda: bench.first() is None)


async def test_a_request_that_has_ended_in_a_cycle_does_not_keep_the_old_model(
    bench: Bench, other: Path
) -> None:
    knot: list[object] = [bench.first()]
    knot.append(knot)
    del knot
    link(other, bench.source.path)
    gc.disable()  # none but that of the reload
    try:
        await bench.life.reload()
        await until(lambda: bench.first() is None)
    finally:
        gc.enable()


async def test_signals_during_a_reload_make_one_more_after_it(bench: Bench) -> None:
    signalled = ReloadOnSignal(bench.life.reload_in_turn)
    watching = asyncio.create_task(signalled.run())
    bench.gate.clear()
    signalled.ask()
    await until(lambda: bench.loads == 1)
    for _ in range(5):
        signalled.ask()
    bench.gate.set()
    await until(lambda: len(bench.results) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert bench.loads == 2
    watching.cancel()


async def test_a_failed_reload_does_not_end_the_watch_for_signals(bench: Bench) -> None:
    signalled = ReloadOnSignal(bench.life.reload_in_turn)
    watching = asyncio.create_task(signalled.run())
    bench.error = BundleMissing(Path("gone"))
    signalled.ask()
    await until(lambda: len(bench.results) == 1)
    bench.error = None
    signalled.ask()
    await until(lambda: len(bench.results) == 2)
    assert bench.results == [ReloadResult.FAILED, ReloadResult.UNCHANGED]
    watching.cancel()


async def test_a_reload_that_breaks_in_a_way_that_nobody_foresaw_does_not_make_deaf() -> None:
    calls: list[int] = []

    async def reload() -> None:
        calls.append(len(calls))
        raise RuntimeError("a loop of links")

    signalled = ReloadOnSignal(reload)
    following = asyncio.create_task(signalled.run())
    for number in (1, 2):
        signalled.ask()
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(calls) == number
    following.cancel()
