"""The series of the reloads, for each process that can see one end."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter

from service.domain import ReloadResult


class ReloadMetrics:
    """Fed when a reload has ended."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collector goes.
        """
        self._reloads = Counter(
            "adrel_reloads",
            "Reloads of the bundle by result: changed, unchanged, failed or refused.",
            ("result",),
            registry=registry,
        )
        for result in ReloadResult:
            self._reloads.labels(result.value)

    def ended(self, result: ReloadResult) -> None:
        """Record how a reload ended."""
        self._reloads.labels(result.value).inc()
