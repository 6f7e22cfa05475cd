from __future__ import annotations

from prometheus_client import CollectorRegistry

from service.metrics.process_metrics import ProcessMetrics


def test_readiness_is_asked_for_when_the_metrics_are_scraped() -> None:
    registry = CollectorRegistry()
    process, ready = ProcessMetrics(registry), [False]
    assert registry.get_sample_value("adrel_ready") == 0
    process.watch_ready(lambda: ready[0])
    assert registry.get_sample_value("adrel_ready") == 0
    ready[0] = True
    assert registry.get_sample_value("adrel_ready") == 1


def test_the_release_and_the_lag_of_the_loop_are_told() -> None:
    registry = CollectorRegistry()
    process = ProcessMetrics(registry)
    process.release_runs("1.2.3")
    process.loop_lagged(0.5)
    assert registry.get_sample_value("adrel_build_info", {"release": "1.2.3"}) == 1
    assert registry.get_sample_value("adrel_event_loop_lag_seconds_bucket", {"le": "0.1"}) == 0
    assert registry.get_sample_value("adrel_event_loop_lag_seconds_bucket", {"le": "1.0"}) == 1
