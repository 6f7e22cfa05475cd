"""Series of the processes that serve: how many there are, and why some had to be started again."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge

from service.domain import RestartReason


class WorkerMetrics:
    """Each worker counts itself as one; the supervisor counts the restarts."""

    def __init__(self, registry: CollectorRegistry, n_processes: int = 1) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
            n_processes: That this one stands for; 0 for a supervisor, which does not serve.
        """
        processes = Gauge(
            "adrel_worker_processes", "Processes that serve on the one port.", registry=registry
        )
        processes.set(n_processes)
        self._restarts = Counter(
            "adrel_worker_restarts",
            "Worker processes that were started in another's place, by what ended that one.",
            ("reason",),
            registry=registry,
        )
        for reason in RestartReason:
            self._restarts.labels(reason.value)

    def restarted(self, reason: RestartReason) -> None:
        """Record that a worker is started in another's place."""
        self._restarts.labels(reason.value).inc()
