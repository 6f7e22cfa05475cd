from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from service.metrics.shadow_metrics import ShadowMetrics
from service.shadow.comparison import Comparison


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> ShadowMetrics:
    return ShadowMetrics(registry)


def test_every_series_is_there_before_the_first_pair(
    metrics: ShadowMetrics, registry: CollectorRegistry
) -> None:
    metrics.shadow_is(name="m", version="2", precision="int8", provider="cpu")
    before = {(s.name, *s.labels.items()) for family in registry.collect() for s in family.samples}
    metrics.pair_took(0.01)
    metrics.compared(Comparison((0.1, -0.1, 0.0), 0.5, False, 1, 1, 1))
    metrics.failed(1)
    metrics.dropped(1)
    after = {(s.name, *s.labels.items()) for family in registry.collect() for s in family.samples}
    assert after == before
    assert len(before) > 60


def test_differences_are_counted_by_their_side_so_that_their_mean_has_a_sign(
    metrics: ShadowMetrics, registry: CollectorRegistry
) -> None:
    metrics.compared(Comparison((0.25, 0.25, -0.125, 0.0), None, None))

    def of(side: str) -> tuple[float | None, float | None]:
        labels = {"direction": side}
        name = "adrel_shadow_score_difference"
        return (
            registry.get_sample_value(f"{name}_count", labels),
            registry.get_sample_value(f"{name}_sum", labels),
        )

    assert (of("higher"), of("lower"), of("equal")) == ((2, 0.5), (1, 0.125), (1, 0))
    assert registry.get_sample_value("adrel_shadow_pairs_total", {"result": "scored"}) == 4
    assert registry.get_sample_value("adrel_shadow_rank_agreement_count") == 0


def test_a_request_counts_by_its_order_its_first_ad_and_its_decisions(
    metrics: ShadowMetrics, registry: CollectorRegistry
) -> None:
    metrics.compared(Comparison((0.0,) * 6, 0.75, True, 3, 2, 1))
    metrics.compared(Comparison((0.0,), 0.25, False))
    assert registry.get_sample_value("adrel_shadow_rank_agreement_sum") == 1.0
    tops = [registry.get_sample_value("adrel_shadow_tops_total", {"result": result})
            for result in ("same", "other")]  # fmt: skip
    decisions = [registry.get_sample_value("adrel_shadow_decisions_total", {"result": result})
                 for result in ("kept", "gained", "lost")]  # fmt: skip
    assert (tops, decisions) == ([1, 1], [3, 2, 1])
