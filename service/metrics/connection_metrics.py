"""Series of the connections: how many there are, and whom the door turned away."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

CUT_REASONS = ("limit", "slow", "head_too_large", "pipelined", "malformed")


class ConnectionMetrics:
    """Fed where a peer is refused; the open ones are counted when it is scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        self._open = Gauge("adrel_connections", "Connections that are open now.", registry=registry)
        self._cut = Counter(
            "adrel_connections_cut",
            "Connections that were turned away or ended for what their peers did.",
            ("reason",),
            registry=registry,
        )
        for reason in CUT_REASONS:
            self._cut.labels(reason)

    def watch_open(self, n_open: Callable[[], int]) -> None:
        """Read the number of open connections whenever the metrics are scraped."""
        self._open.set_function(n_open)

    def cut(self, reason: str) -> None:
        """Record a connection that was ended by us, for one of `CUT_REASONS`."""
        self._cut.labels(reason).inc()
