"""A second model beside the one that serves, where the settings name one."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.api.state import ServiceState, Shadowing
from service.batching.batcher import Batcher
from service.clock import Clock
from service.composition.background import in_background
from service.composition.inference import inference_threads, thread_start
from service.metrics.shadow_metrics import ShadowMetrics
from service.model_life.model_life import tenure
from service.scoring.encoding import EncodedPair
from service.settings import Settings
from service.shadow.policy import may_start
from service.shadow.shadow_model import ShadowModel
from service.shadow.shadow_scorer import ShadowScorer

logger = logging.getLogger(__name__)


@asynccontextmanager
async def shadowing(
    settings: Settings,
    state: ServiceState,
    clock: Clock,
    model: ShadowModel | None,
    batcher: Batcher[EncodedPair],
) -> AsyncIterator[None]:
    """Have a share of the answers scored again by the model, whenever nothing else is to be done.

    Args:
        settings: Effective settings.
        state: Given the shadow.
        clock: Monotonic time.
        model: None where none is asked for.
        batcher: Has the work that comes first.
    """
    if model is None:
        yield
        return
    metrics, threads = ShadowMetrics(state.metrics.registry), inference_threads(settings)
    scorer = ShadowScorer(
        model.score,
        settings.shadow_share,
        lambda: may_start(batcher.queued_pairs, batcher.running_batches, threads),
        clock,
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
    async with in_background(scorer.run()):
        yield
