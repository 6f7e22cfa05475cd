from __future__ import annotations

from prometheus_client import CollectorRegistry

from service.metrics.all_metrics import Metrics

ROUTE = "/v1/score"


def made() -> Metrics:
    return Metrics(CollectorRegistry(), [ROUTE], ["ok", "queue_full"])


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)
