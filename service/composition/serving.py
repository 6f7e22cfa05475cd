"""The model that serves, and each one after it: what scores by it, and what is told of it."""

from __future__ import annotations

import functools
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from service.api.state import Reloads, ServiceState, Serving
from service.batching.batcher import Batcher
from service.clock import Clock
from service.composition.background import in_background
from service.composition.inference import (
    batch_limits,
    inference_threads,
    make_batcher,
    model_source,
    thread_start,
)
from service.composition.sharing import make_shared_cache, shared_scores
from service.heap import freeze_heap
from service.metrics.model_metrics import ModelMetrics
from service.model_life.loaded_model import LoadedModel
from service.model_life.model_life import ModelLife
from service.model_life.reload_on_signal import ReloadOnSignal
from service.scorer import Scorer
from service.scoring.encoding import EncodedPair
from service.settings import Settings
from service.shared_cache.shared_scores import SharedCache
from service.text_tokens import TextTokens

logger = logging.getLogger(__name__)


@asynccontextmanager
async def serving(
    settings: Settings,
    state: ServiceState,
    clock: Clock,
    first: list[LoadedModel],
    mapped: Path | None,
) -> AsyncIterator[Batcher[EncodedPair]]:
    """Score by the first model, and by each that a reload brings.

    Args:
        settings: Effective settings.
        state: Given all that has to do with the models.
        clock: Monotonic time.
        first: The model, alone; taken out, since who holds it keeps its memory from being freed.
        mapped: Folder through which several processes share the weights.
    """
    batcher = make_batcher(settings, state.metrics.batches, clock)
    state.running_batches = lambda: batcher.running_batches
    state.stuck_workers = lambda: batcher.stuck_workers
    state.usable_workers = lambda: batcher.usable_workers
    shared = make_shared_cache(settings, state.metrics.shared_cache, clock)
    life = ModelLife(
        first.pop(),
        _loading(settings, mapped),
        _begin(settings, state, clock, batcher, shared),
        batcher,
        clock,
        on_reload=state.metrics.model.reload_ended,
        finish_timeout_s=settings.drain_timeout_s,
    )
    signalled = ReloadOnSignal(life.reload_in_turn)
    state.reloads = Reloads(life.reload, lambda: life.history)
    state.on_hangup = signalled.ask
    state.drain = functools.partial(_drain, state, batcher, settings.drain_timeout_s)
    freeze_heap()
    model, threads = life.history.serving, inference_threads(settings)
    logger.info("ready", extra={"model": model.name, "version": model.version, "threads": threads})
    async with AsyncExitStack() as background:
        await background.enter_async_context(in_background(signalled.run()))
        if shared is not None:
            await background.enter_async_context(in_background(shared.run()))
        yield batcher
    gc.unfreeze()


def _loading(
    settings: Settings, mapped: Path | None
) -> Callable[[LoadedModel], LoadedModel | None]:
    source, on_thread_start = model_source(settings, mapped), thread_start(settings)

    def load(before: LoadedModel) -> LoadedModel | None:
        """In a thread of its own."""
        on_thread_start()
        return source.load(before)

    return load


def _begin(
    settings: Settings,
    state: ServiceState,
    clock: Clock,
    batcher: Batcher[EncodedPair],
    shared: SharedCache | None,
) -> Callable[[LoadedModel, float], None]:
    limits, metrics = batch_limits(settings), state.metrics.model
    service_facts = {
        "provider": settings.provider,
        "inference_threads": inference_threads(settings),
        "max_batch_pairs": limits.max_pairs,
        "max_batch_tokens": limits.max_padded_tokens,
    }

    def begin(model: LoadedModel, since_s: float) -> None:
        """Requests begin with this model from now on."""
        scorer = Scorer(
            model.bundle,
            model.generation,
            batcher,
            clock,
            model.scores,
            TextTokens(model.bundle.encoder.tokenize, model.tokens),
            answer_margin_s=settings.answer_margin_ms / 1000,
            shared=shared_scores(shared, model) if shared is not None else None,
        )
        facts = model.bundle.manifest.model_dump(mode="json")
        state.begin_with(Serving(scorer, {**facts, **service_facts}))
        _tell(metrics, model, settings.provider, since_s, clock)

    return begin


def _tell(
    metrics: ModelMetrics, model: LoadedModel, provider: str, since_s: float, clock: Clock
) -> None:
    manifest = model.bundle.manifest
    metrics.serves(
        name=manifest.model.name,
        version=manifest.model.version,
        precision=manifest.precision.weights,
        provider=provider,
        since_s=since_s,
    )
    metrics.watch_caches(model.scores.store, model.tokens.store)
    metrics.watch_score_drift(manifest.score_histogram, clock.now_s)


async def _drain(state: ServiceState, batcher: Batcher[EncodedPair], timeout_s: float) -> None:
    """Called by the server when a stop signal comes, while connections are still open."""
    state.draining = True
    cut_pairs = await batcher.drain(timeout_s)
    if cut_pairs:
        logger.warning("drain ran out of time", extra={"cut_pairs": cut_pairs})
