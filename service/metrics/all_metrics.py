"""Every series of the service, on one registry."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry

from service.metrics.batch_metrics import BatchMetrics
from service.metrics.connection_metrics import ConnectionMetrics
from service.metrics.key_metrics import KeyMetrics
from service.metrics.model_metrics import ModelMetrics
from service.metrics.process_metrics import ProcessMetrics
from service.metrics.request_metrics import RequestMetrics
from service.metrics.shared_cache_metrics import SharedCacheMetrics
from service.metrics.worker_metrics import WorkerMetrics


class Metrics:
    """The metrics of each part; their methods are called from the event loop.

    Attributes:
        registry: Where all the collectors are.
        requests: What callers asked for and got.
        batches: What the model was given, and what waits for it.
        connections: Who is there, and who was turned away.
        keys: Which ones hold, and who came without one.
        model: Which one serves, and what it has seen.
        shared_cache: What other replicas had computed already.
        process: Of the process that all of it runs in.
        workers: Of that process as one of several.
    """

    def __init__(
        self, registry: CollectorRegistry, routes: Iterable[str], outcomes: Iterable[str]
    ) -> None:
        """Register everything, so that no series is missing before the first request.

        Args:
            registry: Where the collectors go; tests give a fresh one.
            routes: Every value of the label `route`.
            outcomes: Every value of the label `outcome`.
        """
        self.registry = registry
        self.requests = RequestMetrics(registry, routes, outcomes)
        self.batches = BatchMetrics(registry)
        self.connections = ConnectionMetrics(registry)
        self.keys = KeyMetrics(registry)
        self.model = ModelMetrics(registry, self.requests.scores.counts)
        self.shared_cache = SharedCacheMetrics(registry)
        self.process = ProcessMetrics(registry)
        self.workers = WorkerMetrics(registry)
