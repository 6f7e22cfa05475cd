"""The caches' counts as Prometheus series, read when they are scraped: requests pay nothing."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.caching.fixed_cache import FixedCache


class CacheCollector(Collector):
    """Series of the score cache, and of the token cache beside it."""

    def __init__(self, scores: FixedCache, tokens: FixedCache) -> None:
        """Watch.

        Args:
            scores: Of pairs.
            tokens: Of texts.
        """
        self._caches = {"scores": scores, "tokens": tokens}

    def collect(self) -> Iterator[Metric]:
        """The families as they stand."""
        requests = CounterMetricFamily(
            "adrel_cache_requests",
            "Pairs asked for: hit, miss, or joined to the same pair already in flight.",
            labels=("result",),
        )
        counts = self._caches["scores"].counts
        requests.add_metric(("hit",), counts.hits)
        requests.add_metric(("miss",), counts.misses - counts.joined)
        requests.add_metric(("joined",), counts.joined)
        yield requests
        texts = CounterMetricFamily(
            "adrel_token_cache_requests", "Texts looked up: hit or miss.", labels=("result",)
        )
        counts = self._caches["tokens"].counts
        texts.add_metric(("hit",), counts.hits)
        texts.add_metric(("miss",), counts.misses)
        yield texts
        evictions = CounterMetricFamily(
            "adrel_cache_evictions", "Entries overwritten by others.", labels=("cache",)
        )
        n_bytes = GaugeMetricFamily(
            "adrel_cache_bytes", "Memory of the cache, full or not.", labels=("cache",)
        )
        entries = GaugeMetricFamily("adrel_cache_entries", "Entries.", labels=("cache",))
        for name, cache in self._caches.items():
            evictions.add_metric((name,), cache.counts.evictions)
            n_bytes.add_metric((name,), cache.n_bytes)
            entries.add_metric((name,), cache.counts.entries)
        yield from (evictions, n_bytes, entries)
