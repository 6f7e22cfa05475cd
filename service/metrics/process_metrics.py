"""Prometheus series of the process: which release, is it ready, is its event loop on time."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from service.metrics.buckets import SECONDS


class ProcessMetrics:
    """Series that no request feeds."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._ready = Gauge("adrel_ready", "1 while scores can be served.", registry=registry)
        self._build = Gauge(
            "adrel_build_info", "1 for the release that runs.", ("release",), registry=registry
        )
        lag = Histogram(
            "adrel_event_loop_lag_seconds",
            "How late the event loop ran a timer.",
            buckets=SECONDS,
            registry=registry,
        )
        self.loop_lagged: Callable[[float], None] = lag.observe
        lost = Counter(
            "adrel_log_lines_lost", "Log lines that could not be written.", registry=registry
        )
        self.log_line_lost: Callable[[], None] = lost.inc

    def release_runs(self, release: str) -> None:
        """Say which release of the product this is."""
        self._build.labels(release).set(1)

    def watch_ready(self, is_ready: Callable[[], bool]) -> None:
        """Ask whether scores can be served whenever the metrics are scraped."""
        self._ready.set_function(is_ready)
