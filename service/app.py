"""Composition root: builds every part and joins them.

Read `_lifespan` top to bottom; its reverse is the order of the shutdown.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api import (
    error_handlers,
    explain_route,
    models_route,
    openapi,
    playground_route,
    probes,
    score_route,
)
from service.api.compatible import routes as compatible
from service.api.compatible.release import release
from service.api.doors import OPEN_PATHS
from service.api.keys import NO_KEYS, ApiKeys, Keys
from service.api.recording import once_answered
from service.api.request_log import RequestLog
from service.api.state import Reloads, RequestLimits, ServiceState, Serving, Shadowing
from service.api.tracing import start_tracing
from service.batching.batcher import Batcher
from service.batching.planner import BatchLimits
from service.batching.watchdog import BatchWatchdog, ThreadUse
from service.clock import Clock, LoopClock
from service.cpu import give_way, thread_core_s, usable_cores
from service.heap import freeze_heap
from service.loop_lag import LoopLagProbe
from service.loop_watch import LoopWatch
from service.metrics.all_metrics import Metrics
from service.metrics.shadow_metrics import ShadowMetrics
from service.model_life.loaded_model import LoadedModel, ModelSource
from service.model_life.model_life import ModelLife, tenure
from service.model_life.reload_on_signal import ReloadOnSignal
from service.scorer import Scorer
from service.scoring.encoding import EncodedPair
from service.served_model import ServedModel
from service.settings import Settings
from service.shadow.policy import may_start
from service.shadow.shadow_model import ShadowModel
from service.shadow.shadow_model import load_shadow as open_shadow
from service.shadow.shadow_scorer import ShadowScorer
from service.shared_cache.address import parse_redis_url
from service.shared_cache.connector import RedisConnector
from service.shared_cache.entry import EntryFormat, machine_of
from service.shared_cache.shared_scores import SharedCache, SharedScores
from service.text_tokens import TextTokens

logger = logging.getLogger(__name__)

GPU_BATCHES_IN_FLIGHT = 2  # one computes while the next is fed


def load_model(settings: Settings, mapped: Path | None = None) -> LoadedModel:
    """The model that the settings name: opened, checked against them, and self-tested.

    Args:
        settings: Effective settings.
        mapped: Folder through which several processes share the weights.

    Raises:
        StartupError: It cannot be served here; the message says why.
    """
    model = model_source(settings, mapped).load()
    assert model is not None  # noqa: S101  # there is none before it that it could equal
    return model


def model_source(settings: Settings, mapped: Path | None = None) -> ModelSource:
    """Where models come from, now and at every reload."""
    return ModelSource(
        settings.bundle, settings.provider, batch_limits(settings), settings.cache_bytes, mapped
    )


def load_shadow(settings: Settings) -> ShadowModel | None:
    """The model that scores as the shadow; None where none is asked for.

    Raises:
        StartupError: It could not be served here; the message says why.
    """
    if settings.shadow_bundle is None:
        return None
    return open_shadow(settings.shadow_bundle, settings.provider, batch_limits(settings))


def batch_limits(settings: Settings) -> BatchLimits:
    """Ceilings of a batch: the settings' own, else what suits the provider."""
    on_cpu = settings.provider == "cpu"
    return BatchLimits(
        max_pairs=settings.max_batch_pairs or (8 if on_cpu else 64),
        max_padded_tokens=settings.max_batch_tokens or (4096 if on_cpu else 32_768),
        max_padding_ratio=settings.max_padding_ratio,
    )


def thread_start(settings: Settings) -> Callable[[], None]:
    """What a thread that computes calls first."""
    return give_way if settings.inference_gives_way else lambda: None


def inference_threads(settings: Settings) -> int:
    """Batches that run at once."""
    if settings.inference_threads:
        return settings.inference_threads
    return usable_cores() if settings.provider == "cpu" else GPU_BATCHES_IN_FLIGHT


def create_app(
    settings: Settings,
    model: LoadedModel,
    keys: Keys = NO_KEYS,
    shadow: ShadowModel | None = None,
    mapped: Path | None = None,
) -> FastAPI:
    """The application around a model that has passed its self-test.

    Args:
        settings: Effective settings.
        model: What `load_model` gave for them; the first to serve.
        keys: Those that are asked for; kept up to date as long as the application runs.
        shadow: What `load_shadow` gave for the settings.
        mapped: As `load_model` takes it; for the models after the first.
    """
    outcomes = ["ok", "partial", *error_handlers.error_codes()]
    routes = [score_route.SCORE_ROUTE, explain_route.EXPLAIN_ROUTE, *compatible.COUNTED_ROUTES]
    metrics = Metrics(CollectorRegistry(), routes, outcomes)
    limits = RequestLimits(
        max_body_bytes=settings.max_body_bytes,
        body_timeout_s=settings.body_timeout_s,
        max_ads=settings.max_ads_per_request,
        default_timeout_s=settings.default_timeout_ms / 1000,
        max_timeout_s=settings.max_timeout_ms / 1000,
    )
    state = ServiceState(metrics, limits)
    metrics.process.release_runs(release())
    metrics.process.watch_ready(lambda: state.why_not_ready() is None)
    if keys.callers is not None:
        metrics.keys.watch("callers", keys.callers)
    if keys.operators is not None:
        metrics.keys.watch("operators", keys.operators)
    first = [model]  # handed on: held here, it would outlive the models after it
    del model

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with (
            _lifespan(settings, state, first, mapped) as batcher,
            _shadowing(settings, state, shadow, batcher),
            _up_to_date(keys.callers),
            _up_to_date(keys.operators),
        ):
            yield

    app = FastAPI(
        title="adrel",
        summary="How relevant is each ad to this query?",
        lifespan=lifespan,
        openapi_url=None,  # `openapi.install` serves the document, and the page that shows it
        redirect_slashes=False,
    )
    app.state.service = state
    app.include_router(score_route.router)
    app.include_router(explain_route.router)
    if settings.playground:
        app.include_router(playground_route.router)
    app.include_router(probes.router)
    app.include_router(models_route.router)
    if settings.admin_port is None:
        app.include_router(probes.metrics_router)
    for router in compatible.ROUTERS:
        app.include_router(router)
    error_handlers.install(app, compatible.routing_error)
    openapi.install(app, limits, [ServedModel], OPEN_PATHS if keys.callers is not None else None)
    return app


@asynccontextmanager
async def _lifespan(
    settings: Settings, state: ServiceState, first: list[LoadedModel], mapped: Path | None
) -> AsyncIterator[Batcher[EncodedPair]]:
    clock, limits, threads = LoopClock(), batch_limits(settings), inference_threads(settings)
    source = model_source(settings, mapped)
    on_thread_start = thread_start(settings)
    batcher: Batcher[EncodedPair] = Batcher(
        limits,
        workers=threads,
        max_queue_s=settings.max_queue_ms / 1000,
        clock=clock,
        on_batch=state.metrics.batches.done,
        on_worker_start=on_thread_start,
    )
    service_facts = {
        "provider": settings.provider,
        "inference_threads": threads,
        "max_batch_pairs": limits.max_pairs,
        "max_batch_tokens": limits.max_padded_tokens,
    }

    def load(before: LoadedModel) -> LoadedModel | None:
        """In a thread of its own."""
        on_thread_start()
        return source.load(before)

    shared = _shared_cache(settings, clock, state)

    def serve(model: LoadedModel, since_s: float) -> None:
        """Requests begin with this model from now on."""
        scorer = Scorer(
            model.bundle,
            model.generation,
            batcher,
            clock,
            model.scores,
            TextTokens(model.bundle.encoder.tokenize, model.tokens),
            answer_margin_s=settings.answer_margin_ms / 1000,
            shared=_shared_scores(shared, model) if shared is not None else None,
        )
        facts = model.bundle.manifest.model_dump(mode="json")
        state.begin_with(Serving(scorer, {**facts, **service_facts}))
        state.metrics.model.serves(
            name=model.bundle.manifest.model.name,
            version=model.bundle.manifest.model.version,
            precision=model.bundle.manifest.precision.weights,
            provider=settings.provider,
            since_s=since_s,
        )
        state.metrics.model.watch_caches(model.scores.store, model.tokens.store)
        state.metrics.model.watch_score_drift(model.bundle.manifest.score_histogram, clock.now_s)

    state.metrics.batches.workers_are(threads)
    state.metrics.batches.watch_queue(
        lambda: batcher.queued_pairs, lambda: batcher.queued_s, lambda: batcher.running_batches
    )
    state.metrics.batches.watch_budget(lambda: batcher.budget_tokens)
    state.clock = clock
    state.running_batches = lambda: batcher.running_batches
    life = ModelLife(
        first.pop(),
        load,
        serve,
        batcher,
        clock,
        on_reload=state.metrics.model.reload_ended,
        finish_timeout_s=settings.drain_timeout_s,
    )
    signalled = ReloadOnSignal(life.reload_in_turn)
    state.reloads = Reloads(life.reload, lambda: life.history)
    state.on_hangup = signalled.ask
    request_log = RequestLog(clock, every_request=settings.log_requests)
    state.request_listeners = (request_log,)
    tracing = start_tracing(os.environ, release(), clock.now_s)
    if tracing is not None:  # first, since it names the trace for the log
        state.request_listeners = (once_answered(tracing, request_log),)
    freeze_heap()

    async def drain() -> None:
        """Called by the server when a stop signal comes, while connections are still open."""
        state.draining = True
        cut_pairs = await batcher.drain(settings.drain_timeout_s)
        if cut_pairs:
            logger.warning("drain ran out of time", extra={"cut_pairs": cut_pairs})

    state.drain = drain
    serving = life.history.serving
    logger.info(
        "ready", extra={"model": serving.name, "version": serving.version, "threads": threads}
    )
    in_background = [signalled.run] if shared is None else [signalled.run, shared.run]
    watching = [asyncio.create_task(run()) for run in in_background]
    with _watched(settings.watchdog_s, state, batcher, clock):
        yield batcher
    for task in watching:
        task.cancel()
    if tracing is not None:
        await tracing.stop()
    gc.unfreeze()


def _shared_cache(settings: Settings, clock: LoopClock, state: ServiceState) -> SharedCache | None:
    if settings.redis_url is None:
        return None
    password = settings.redis_password.get_secret_value() if settings.redis_password else None
    cache = SharedCache(
        RedisConnector(parse_redis_url(settings.redis_url), password).connect,
        clock,
        timeout_s=settings.redis_timeout_ms / 1000,
        ttl_s=settings.redis_ttl_s,
        random=random.random,
        on_lookup=state.metrics.shared_cache.looked_up,
    )
    state.metrics.shared_cache.watch(cache.counts, lambda: cache.state)
    return cache


def _shared_scores(cache: SharedCache, model: LoadedModel) -> SharedScores:
    entries = EntryFormat(
        model.bundle.manifest.model.version,
        machine_of(model.golden_logits),
        model.bundle.n_logits,
    )
    return SharedScores(cache, entries)


@asynccontextmanager
async def _shadowing(
    settings: Settings,
    state: ServiceState,
    model: ShadowModel | None,
    batcher: Batcher[EncodedPair],
) -> AsyncIterator[None]:
    if model is None:
        yield
        return
    assert state.clock is not None  # noqa: S101  # set by `_lifespan`
    metrics, threads = ShadowMetrics(state.metrics.registry), inference_threads(settings)
    scorer = ShadowScorer(
        model.score,
        settings.shadow_share,
        lambda: may_start(batcher.queued_pairs, batcher.running_batches, threads),
        state.clock,
        metrics,
        on_thread_start=thread_start(settings),
    )
    identity = tenure(model.bundle, time.time())
    metrics.watch_waiting(lambda: scorer.waiting_pairs)
    metrics.shadow_is(
        name=identity.name,
        version=identity.version,
        precision=model.bundle.manifest.precision.weights,
        provider=settings.provider,
    )
    state.shadow = Shadowing(scorer.offer, scorer.forget, identity, settings.shadow_share)
    of_serving = state.running_batches
    state.running_batches = lambda: of_serving() + scorer.running
    one_pair_ms = round(1000 * model.one_pair_s, 2)
    facts = {"model": identity.name, "version": identity.version, "one_pair_ms": one_pair_ms}
    logger.info("the shadow is ready", extra=facts)
    working = asyncio.create_task(scorer.run())
    try:
        yield
    finally:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await working


@contextlib.contextmanager
def _watched(
    watchdog_s: float, state: ServiceState, batcher: Batcher[EncodedPair], clock: Clock
) -> Iterator[None]:
    """See that batches end and that the event loop turns; that a stop ends is seen to the last."""

    def thread_use(thread_id: int) -> ThreadUse | None:
        use = thread_core_s(thread_id)
        return ThreadUse(*use) if use is not None else None

    watchdog = BatchWatchdog(batcher.batches, batcher.give_up, watchdog_s, thread_use)
    loop_watch = LoopWatch(watchdog_s)

    def tick(lag_s: float) -> None:
        """Called ten times a second."""
        state.metrics.process.loop_lagged(lag_s)
        watchdog.look(clock.now_s())
        loop_watch.beat()

    def stop_is_asked(limit_s: float) -> None:
        """Called in the handler of the stop signal."""
        state.stopping = True
        loop_watch.leave_within(limit_s)

    state.stop_is_asked = stop_is_asked
    state.stuck_workers = lambda: batcher.stuck_workers
    state.usable_workers = lambda: batcher.usable_workers
    state.metrics.batches.watch_stuck_workers(state.stuck_workers)
    loop_lag = LoopLagProbe(clock, tick)
    loop_lag.start()
    loop_watch.start()
    yield
    loop_lag.stop()
    loop_watch.stop()


@asynccontextmanager
async def _up_to_date(keys: ApiKeys | None) -> AsyncIterator[None]:
    if keys is None:
        yield
        return
    following = asyncio.create_task(keys.keep_following())
    try:
        yield
    finally:
        following.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await following
