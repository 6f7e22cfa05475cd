"""What the settings mean for the models and their batches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from service.batching.batcher import Batcher
from service.batching.planner import BatchLimits
from service.clock import Clock
from service.cpu import give_way, usable_cores
from service.metrics.batch_metrics import BatchMetrics
from service.model_life.loaded_model import ModelSource
from service.scoring.encoding import EncodedPair
from service.settings import Settings

GPU_BATCHES_IN_FLIGHT = 2  # one computes while the next is fed


def model_source(settings: Settings, mapped: Path | None) -> ModelSource:
    """Where models come from, now and at every reload.

    Args:
        settings: Effective settings.
        mapped: Folder through which several processes share the weights.
    """
    return ModelSource(
        settings.bundle, settings.provider, batch_limits(settings), settings.cache_bytes, mapped
    )


def batch_limits(settings: Settings) -> BatchLimits:
    """Ceilings of a batch: the settings' own, else what suits the provider."""
    on_cpu = settings.provider == "cpu"
    return BatchLimits(
        max_pairs=settings.max_batch_pairs or (32 if on_cpu else 64),
        max_padded_tokens=settings.max_batch_tokens or (512 if on_cpu else 32_768),
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


def make_batcher(settings: Settings, metrics: BatchMetrics, clock: Clock) -> Batcher[EncodedPair]:
    """The one batcher of all models, watched by the metrics."""
    threads = inference_threads(settings)
    batcher: Batcher[EncodedPair] = Batcher(
        batch_limits(settings),
        workers=threads,
        max_queue_s=settings.max_queue_ms / 1000,
        clock=clock,
        on_batch=metrics.done,
        on_worker_start=thread_start(settings),
    )
    metrics.workers_are(threads)
    metrics.watch_queue(
        lambda: batcher.queued_pairs, lambda: batcher.queued_s, lambda: batcher.running_batches
    )
    metrics.watch_budget(lambda: batcher.budget_tokens)
    metrics.watch_stuck_workers(lambda: batcher.stuck_workers)
    return batcher
