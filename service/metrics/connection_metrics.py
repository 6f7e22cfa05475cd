"""Series of the connections: how many there are, and whom the door turned away."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

KEY_PROBLEMS = ("missing", "wrong")
CUT_REASONS = ("limit", "slow", "head_too_large", "pipelined")


class ConnectionMetrics:
    """Fed where a peer is refused; the open ones are counted when it is scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        self._unauthorized = Counter(
            "adrel_unauthorized",
            "Requests for any path that were refused for want of a key, or for a wrong one.",
            ("key",),
            registry=registry,
        )
        self._open = Gauge("adrel_connections", "Connections that are open now.", registry=registry)
        self._cut = Counter(
            "adrel_connections_cut",
            "Connections that were turned away or ended for what their peers did.",
            ("reason",),
            registry=registry,
        )
        for problem in KEY_PROBLEMS:
            self._unauthorized.labels(problem)
        for reason in CUT_REASONS:
            self._cut.labels(reason)

    def watch_open(self, n_open: Callable[[], int]) -> None:
        """Read the number of open connections whenever the metrics are scraped."""
        self._open.set_function(n_open)

    def unauthorized(self, *, has_key: bool) -> None:
        """Record a request that was refused before it was read.

        Args:
            has_key: It had a key, which was wrong.
        """
        self._unauthorized.labels("wrong" if has_key else "missing").inc()

    def cut(self, reason: str) -> None:
        """Record a connection that was ended by us, for one of `CUT_REASONS`."""
        self._cut.labels(reason).inc()
