"""Series of the shared cache; all stay at 0 where none is used."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from service.shared_cache.breaker import BreakerState
from service.shared_cache.counts import SharedCacheCounts

# A redis nearby answers in a fraction of a millisecond, and is waited for a few at most.
LOOKUP_SECONDS = (0.0001, 0.0002, 0.0003, 0.0005, 0.00075, 0.001, 0.0015, 0.002, 0.003, 0.005,
                  0.01, 0.025)  # fmt: skip


class SharedCacheMetrics(Collector):
    """The counts and the breaker are read when they are scraped: requests pay for the time alone.

    Attributes:
        looked_up: Told how many seconds each lookup took.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        self._counts = SharedCacheCounts()
        self._state: Callable[[], BreakerState] | None = None
        seconds = Histogram(
            "adrel_shared_cache_duration_seconds",
            "From asking redis to its answer, or to giving up.",
            buckets=LOOKUP_SECONDS,
            registry=registry,
        )
        self.looked_up: Callable[[float], None] = seconds.observe
        registry.register(self)

    def watch(self, counts: SharedCacheCounts, state: Callable[[], BreakerState]) -> None:
        """Tell of a shared cache from now on.

        Args:
            counts: Kept up to date by it.
            state: Of its breaker.
        """
        self._counts = counts
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """The families as they stand."""
        requests = CounterMetricFamily(
            "adrel_shared_cache_requests",
            "Pairs that the local cache did not have, by what the shared one gave for them.",
            labels=("result",),
        )
        for result, n_pairs in self._counts.lookups.items():
            requests.add_metric((result.value,), n_pairs)
        writes = CounterMetricFamily(
            "adrel_shared_cache_writes",
            "Computed pairs, by whether they came into the shared cache.",
            labels=("result",),
        )
        for written, n_pairs in self._counts.writes.items():
            writes.add_metric((written.value,), n_pairs)
        breaker = GaugeMetricFamily(
            "adrel_shared_cache_breaker",
            "1 for the state of the breaker; closed is when the shared cache is in use.",
            labels=("state",),
        )
        now = self._state() if self._state is not None else None
        for state in BreakerState:
            breaker.add_metric((state.value,), float(state is now))
        yield from (requests, writes, breaker)
