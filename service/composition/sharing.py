"""The cache that replicas share, where the settings name one."""

from __future__ import annotations

import random

from service.clock import Clock
from service.metrics.shared_cache_metrics import SharedCacheMetrics
from service.model_life.loaded_model import LoadedModel
from service.settings import Settings
from service.shared_cache.address import parse_redis_url
from service.shared_cache.connector import RedisConnector
from service.shared_cache.entry import EntryFormat, machine_of
from service.shared_cache.shared_scores import SharedCache, SharedScores


def make_shared_cache(
    settings: Settings, metrics: SharedCacheMetrics, clock: Clock
) -> SharedCache | None:
    """The shared cache, watched by the metrics; None where none is asked for."""
    if settings.redis_url is None:
        return None
    password = settings.redis_password.get_secret_value() if settings.redis_password else None
    cache = SharedCache(
        RedisConnector(parse_redis_url(settings.redis_url), password).connect,
        clock,
        timeout_s=settings.redis_timeout_ms / 1000,
        ttl_s=settings.redis_ttl_s,
        random=random.random,
        on_lookup=metrics.looked_up,
    )
    metrics.watch(cache.counts, lambda: cache.state)
    return cache


def shared_scores(cache: SharedCache, model: LoadedModel) -> SharedScores:
    """What the cache holds of one model, as this machine computes it."""
    entries = EntryFormat(
        model.bundle.manifest.model.version,
        machine_of(model.golden_logits),
        model.bundle.n_logits,
    )
    return SharedScores(cache, entries)
