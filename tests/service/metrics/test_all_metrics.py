from __future__ import annotations

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from service.metrics.buckets import SECONDS
from tests.service.metrics.conftest import ROUTE, made, value


def test_every_series_exists_before_the_first_request() -> None:
    metrics = made()
    assert value(metrics, "adrel_requests_total", route=ROUTE, outcome="ok") == 0
    assert value(metrics, "adrel_pairs_total", status="deadline") == 0
    assert value(metrics, "adrel_shed_total", reason="queue_full") == 0
    assert value(metrics, "adrel_stage_duration_seconds_count", stage="queue") == 0
    assert value(metrics, "adrel_request_duration_seconds_count", route=ROUTE) == 0
    assert value(metrics, "adrel_auction_requests_total", result="late") == 0
    assert value(metrics, "adrel_score_drift") == 0


@pytest.mark.parametrize("timeout_ms", [10, 20, 30, 50, 100, 200, 300])
def test_a_usual_timeout_is_the_edge_of_a_bucket(timeout_ms: int) -> None:
    assert timeout_ms / 1000 in SECONDS


def test_the_exposition_parses_and_has_no_series_that_answer_no_question() -> None:
    text = generate_latest(made().registry).decode()
    names = {
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert not [name for name in names if name.endswith("_created")]
