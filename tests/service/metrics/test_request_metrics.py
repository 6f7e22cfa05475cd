from __future__ import annotations

from service.domain import AdScore, PairStatus, StageTimes
from tests.service.metrics.conftest import ROUTE, made, value


def test_an_answered_request_is_counted_pair_by_pair() -> None:
    metrics = made()
    scores = [
        AdScore("a", 0.9, PairStatus.OK, truncated=True),
        AdScore("b", None, PairStatus.DEADLINE, truncated=False),
    ]
    metrics.requests.scored(scores, StageTimes(0.001, 0.002, 0.03, 0.033), slack_s=-0.5)
    assert value(metrics, "adrel_pairs_total", status="ok") == 1
    assert value(metrics, "adrel_pairs_total", status="deadline") == 1
    assert value(metrics, "adrel_truncated_pairs_total") == 1
    assert value(metrics, "adrel_score_sum") == 0.9
    assert value(metrics, "adrel_deadline_slack_seconds_bucket", le="0.0") == 1


def test_texts_that_were_made_up_tell_nothing_of_the_traffic() -> None:
    metrics = made()
    scores = [AdScore("a", 0.9, PairStatus.OK, truncated=True)]
    metrics.requests.scored(scores, StageTimes(0, 0, 0, 0), slack_s=1, probe=True)
    assert value(metrics, "adrel_pairs_total", status="ok") == 1
    assert value(metrics, "adrel_truncated_pairs_total") == 0
    assert value(metrics, "adrel_score_count") == 0


def test_a_refused_request_is_counted_as_shed() -> None:
    metrics = made()
    metrics.requests.done(ROUTE, "queue_full", 0.001)
    assert value(metrics, "adrel_requests_total", route=ROUTE, outcome="queue_full") == 1
    assert value(metrics, "adrel_shed_total", reason="queue_full") == 1


def test_a_request_is_in_flight_from_its_start_to_its_end() -> None:
    metrics = made()
    metrics.requests.started()
    metrics.requests.started()
    assert value(metrics, "adrel_requests_in_flight") == 2
    metrics.requests.done(ROUTE, "ok", 0.001, n_pairs=20)
    assert value(metrics, "adrel_requests_in_flight") == 1
    metrics.requests.done(ROUTE, "ok", 0.001)
    assert value(metrics, "adrel_requests_in_flight") == 0
    assert value(metrics, "adrel_request_pairs_count") == 1
    assert value(metrics, "adrel_request_pairs_sum") == 20
