"""Series of the model: which one serves and since when, its caches, its drift, its reloads."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prometheus_client import CollectorRegistry, Gauge

from service.caching.fixed_cache import FixedCache
from service.domain import ReloadResult
from service.metrics.cache_metrics import CacheCollector
from service.metrics.reload_metrics import ReloadMetrics
from service.metrics.score_drift import ScoreDrift


class ModelMetrics:
    """Fed when another model takes over; caches and drift are read when it is scraped."""

    def __init__(
        self, registry: CollectorRegistry, score_counts: Callable[[], Sequence[int]]
    ) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
            score_counts: Scores given so far in each bin of the drift; only grows.
        """
        self._registry = registry
        self._info = Gauge(
            "adrel_model_info",
            "1 for the model that serves.",
            ("name", "version", "precision", "provider"),
            registry=registry,
        )
        self._loaded = Gauge(
            "adrel_model_loaded_timestamp_seconds",
            "Unix time since which the model serves.",
            registry=registry,
        )
        self._reloads = ReloadMetrics(registry)
        self._drift = ScoreDrift(score_counts)
        registry.register(self._drift)
        self._caches: CacheCollector | None = None

    def serves(
        self, *, name: str, version: str, precision: str, provider: str, since_s: float
    ) -> None:
        """Say which model serves from now on, and no other.

        Args:
            name: Of the model.
            version: Likewise.
            precision: Of its weights.
            provider: Execution provider.
            since_s: Unix time.
        """
        self._info.clear()
        self._info.labels(name, version, precision, provider).set(1)
        self._loaded.set(since_s)

    def watch_caches(self, scores: FixedCache, tokens: FixedCache) -> None:
        """Read the caches' counts whenever the metrics are scraped; those of before no longer.

        Args:
            scores: Of pairs.
            tokens: Of texts.
        """
        if self._caches is not None:
            self._registry.unregister(self._caches)
        self._caches = CacheCollector(scores, tokens)
        self._registry.register(self._caches)

    def watch_score_drift(self, reference: Sequence[float], now_s: Callable[[], float]) -> None:
        """Compare the scores from now on with the model's own, whenever the metrics are scraped.

        Args:
            reference: Share of the scores in each of ten equal bins at export.
            now_s: Monotonic seconds.
        """
        self._drift.compare_with(reference, now_s)

    def reload_ended(self, result: ReloadResult) -> None:
        """Record how a reload ended."""
        self._reloads.ended(result)
