"""Composition root: builds every part and joins them.

Read `_lifespan` top to bottom; its reverse is the order of the shutdown.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from prometheus_client import CollectorRegistry

from service.api import (
    error_handlers,
    explain_route,
    openapi,
    playground_route,
    probes,
    score_route,
)
from service.api.compatible import routes as compatible
from service.api.compatible.release import release
from service.api.keys import ApiKeys
from service.api.recording import once_answered
from service.api.request_log import RequestLog
from service.api.state import RequestLimits, ServiceState
from service.api.tracing import start_tracing
from service.batching.batcher import Batcher
from service.batching.cost_model import CostModel
from service.batching.planner import BatchLimits
from service.caching.score_cache import ScoreCache
from service.caching.token_cache import TokenCache
from service.clock import LoopClock
from service.cost_warm_up import learn_costs
from service.cpu import give_way, usable_cores
from service.errors import InvalidSetting
from service.loop_lag import LoopLagProbe
from service.metrics import Metrics
from service.scorer import Scorer
from service.scoring.bundle import Bundle, open_bundle, self_test
from service.scoring.encoding import EncodedPair
from service.served_model import ServedModel
from service.settings import Settings
from service.text_tokens import TextTokens

logger = logging.getLogger(__name__)

TOKEN_CACHE_SHARE = 0.25  # of the memory for caches; the rest keeps scores

GPU_BATCHES_IN_FLIGHT = 2  # one computes while the next is fed


def load_bundle(settings: Settings) -> Bundle:
    """The bundle that the settings name: opened, checked against them, and self-tested.

    Raises:
        StartupError: It cannot be served here; the message says why.
    """
    bundle = open_bundle(settings.bundle, settings.provider)
    longest = bundle.manifest.inputs.max_length_tokens
    most = batch_limits(settings).max_padded_tokens
    if most < longest:
        # The planner relies on this: a longer pair could never leave the queue.
        raise InvalidSetting(
            f"max_batch_tokens is {most}, under the model's longest pair of {longest} tokens"
        )
    worst = self_test(bundle)
    logger.info("golden pairs agree with the export", extra={"worst_logit_difference": worst})
    return bundle


def batch_limits(settings: Settings) -> BatchLimits:
    """Ceilings of a batch: the settings' own, else what suits the provider."""
    on_cpu = settings.provider == "cpu"
    return BatchLimits(
        max_pairs=settings.max_batch_pairs or (8 if on_cpu else 64),
        max_padded_tokens=settings.max_batch_tokens or (4096 if on_cpu else 32_768),
        max_padding_ratio=settings.max_padding_ratio,
    )


def worker_count(settings: Settings) -> int:
    """Batches that run at once."""
    if settings.workers:
        return settings.workers
    return usable_cores() if settings.provider == "cpu" else GPU_BATCHES_IN_FLIGHT


def create_app(settings: Settings, bundle: Bundle, keys: ApiKeys | None = None) -> FastAPI:
    """The application around a model that has passed its self-test.

    Args:
        settings: Effective settings.
        bundle: What `load_bundle` gave for them.
        keys: Of the callers, if any are asked for; kept up to date as long as the application runs.
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

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with _lifespan(settings, state, bundle), _up_to_date(keys):
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
    if settings.admin_port is None:
        app.include_router(probes.metrics_router)
    for router in compatible.ROUTERS:
        app.include_router(router)
    error_handlers.install(app, compatible.routing_error)
    openapi.install(app, limits, [ServedModel])
    return app


@asynccontextmanager
async def _lifespan(settings: Settings, state: ServiceState, bundle: Bundle) -> AsyncIterator[None]:
    identity, workers = bundle.manifest.model, worker_count(settings)
    state.metrics.model_serves(
        name=identity.name,
        version=identity.version,
        precision=bundle.manifest.precision.weights,
        provider=settings.provider,
        workers=workers,
    )
    clock, limits = LoopClock(), batch_limits(settings)
    cost_model = CostModel()
    learn_costs(cost_model, bundle, limits)
    batcher: Batcher[EncodedPair] = Batcher(
        bundle.model,
        limits,
        workers=workers,
        max_queue_s=settings.max_queue_ms / 1000,
        cost_model=cost_model,
        clock=clock,
        on_batch=state.metrics.batch_done,
        on_worker_start=give_way if settings.inference_gives_way else lambda: None,
    )
    token_bytes = int(settings.cache_bytes * TOKEN_CACHE_SHARE)
    tokens = TokenCache(token_bytes, bundle.manifest.inputs.max_length_tokens)
    scores = ScoreCache(settings.cache_bytes - token_bytes, bundle.n_logits, identity.version)
    scorer = Scorer(
        bundle,
        batcher,
        clock,
        scores,
        TextTokens(bundle.encoder.tokenize, tokens),
        answer_margin_s=settings.answer_margin_ms / 1000,
    )
    state.metrics.watch_queue(
        lambda: batcher.queued_pairs, lambda: batcher.queued_s, lambda: batcher.running_batches
    )
    state.metrics.watch_caches(scores.store, tokens.store, lambda: scorer.joined_pairs)
    state.metrics.watch_score_drift(bundle.manifest.score_histogram, clock.now_s)
    loop_lag = LoopLagProbe(clock, state.metrics.process.loop_lagged)
    # What lives now lives for good: without this each full collection walks all of it, and
    # an auction waits.
    gc.collect()
    gc.freeze()
    facts = bundle.manifest.model_dump(mode="json")
    state.clock = clock
    state.model = {
        **facts,
        "provider": settings.provider,
        "workers": workers,
        "max_batch_pairs": limits.max_pairs,
        "max_batch_tokens": limits.max_padded_tokens,
    }
    state.scorer = scorer
    state.running_batches = lambda: batcher.running_batches
    request_log = RequestLog(clock, every_request=settings.log_requests)
    state.request_listeners = (request_log,)
    tracing = start_tracing(os.environ, release(), clock.now_s)
    if tracing is not None:  # first, since it names the trace for the log
        state.request_listeners = (once_answered(tracing, request_log),)

    async def drain() -> None:
        """Called by the server when a stop signal comes, while connections are still open."""
        state.draining = True
        cut_pairs = await batcher.drain(settings.drain_timeout_s)
        if cut_pairs:
            logger.warning("drain ran out of time", extra={"cut_pairs": cut_pairs})

    state.drain = drain
    logger.info(
        "ready",
        extra={"model": identity.name, "version": identity.version, "workers": workers},
    )
    loop_lag.start()
    yield
    loop_lag.stop()
    if tracing is not None:
        await tracing.stop()
    gc.unfreeze()


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
