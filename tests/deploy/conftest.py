from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

from service.api.error_handlers import error_codes
from service.caching.fixed_cache import FixedCache
from service.metrics.all_metrics import Metrics
from service.metrics.shadow_metrics import ShadowMetrics


@pytest.fixture(scope="session")
def families() -> list[Metric]:
    """All that the service exposes."""
    metrics = Metrics(CollectorRegistry(), ["/v1/score"], ["ok", "partial", *error_codes()])
    metrics.model.serves(name="m", version="1", precision="int8", provider="cpu", since_s=0)
    metrics.process.release_runs("1")
    metrics.model.watch_caches(FixedCache(2**16, 5), FixedCache(2**16, 5))
    shadow = ShadowMetrics(metrics.registry)
    shadow.shadow_is(name="m", version="2", precision="int8", provider="cpu")
    return list(metrics.registry.collect())


@pytest.fixture(scope="session")
def labels_of(families: list[Metric]) -> dict[str, set[str]]:
    """The labels of each series."""
    return {sample.name: set(sample.labels) for family in families for sample in family.samples}


@pytest.fixture(scope="session")
def label_values(families: list[Metric]) -> dict[str, set[str]]:
    """The values of each label."""
    values: dict[str, set[str]] = {}
    for family in families:
        for sample in family.samples:
            for label, value in sample.labels.items():
                values.setdefault(label, set()).add(value)
    return values
