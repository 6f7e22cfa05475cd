from __future__ import annotations

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from service.batching.batch import BatchDone
from service.caching.fixed_cache import Digester, FixedCache
from service.domain import AdScore, PairStatus, ReloadResult, StageTimes
from service.metrics import SECONDS, Metrics

ROUTE = "/v1/score"


def made() -> Metrics:
    return Metrics(CollectorRegistry(), [ROUTE], ["ok", "queue_full"])


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


def test_every_series_exists_before_the_first_request() -> None:
    metrics = made()
    assert value(metrics, "adrel_requests_total", route=ROUTE, outcome="ok") == 0
    assert value(metrics, "adrel_pairs_total", status="deadline") == 0
    assert value(metrics, "adrel_shed_total", reason="queue_full") == 0
    assert value(metrics, "adrel_stage_duration_seconds_count", stage="queue") == 0
    assert value(metrics, "adrel_request_duration_seconds_count", route=ROUTE) == 0
    assert value(metrics, "adrel_auction_requests_total", result="late") == 0
    assert value(metrics, "adrel_score_drift") == 0


def test_a_batch_is_counted_with_its_padding() -> None:
    metrics = made()
    metrics.batch_done(BatchDone(4, 90, 100, predicted_s=0.03, inference_s=0.02, failed=False))
    assert value(metrics, "adrel_batch_pairs_sum") == 4
    assert value(metrics, "adrel_batch_padded_tokens_sum") == 100
    padding = value(metrics, "adrel_padding_ratio_sum")
    assert padding is not None
    assert round(padding, 6) == 0.1
    assert value(metrics, "adrel_batch_failures_total") == 0
    assert value(metrics, "adrel_predicted_over_actual_cost_sum") == 1.5


def test_a_failed_batch_says_nothing_of_the_prediction() -> None:
    metrics = made()
    metrics.batch_done(BatchDone(4, 90, 100, predicted_s=0.03, inference_s=0.01, failed=True))
    assert value(metrics, "adrel_batch_failures_total") == 1
    assert value(metrics, "adrel_predicted_over_actual_cost_count") == 0


def test_the_caches_are_read_when_the_metrics_are_scraped() -> None:
    metrics = made()
    scores, tokens = FixedCache(2**16, 5), FixedCache(2**15, 100)
    metrics.watch_caches(scores, tokens)
    scores.counts.joined = 1
    keys = Digester().keys(["a", "b", "c"])
    scores.insert(keys[:1], np.zeros((1, 5), np.uint8))
    scores.lookup(keys)
    by_result = {
        result: value(metrics, "adrel_cache_requests_total", result=result)
        for result in ("hit", "miss", "joined")
    }
    assert by_result == {"hit": 1, "miss": 1, "joined": 1}
    assert value(metrics, "adrel_token_cache_requests_total", result="hit") == 0
    assert value(metrics, "adrel_cache_entries", cache="scores") == 1
    assert value(metrics, "adrel_cache_evictions_total", cache="scores") == 0
    assert value(metrics, "adrel_cache_bytes", cache="tokens") == tokens.n_bytes


def test_an_answered_request_is_counted_pair_by_pair() -> None:
    metrics = made()
    scores = [
        AdScore("a", 0.9, PairStatus.OK, truncated=True),
        AdScore("b", None, PairStatus.DEADLINE, truncated=False),
    ]
    metrics.request_scored(scores, StageTimes(0.001, 0.002, 0.03, 0.033), slack_s=-0.5)
    assert value(metrics, "adrel_pairs_total", status="ok") == 1
    assert value(metrics, "adrel_pairs_total", status="deadline") == 1
    assert value(metrics, "adrel_truncated_pairs_total") == 1
    assert value(metrics, "adrel_score_sum") == 0.9
    assert value(metrics, "adrel_deadline_slack_seconds_bucket", le="0.0") == 1


def test_texts_that_were_made_up_tell_nothing_of_the_traffic() -> None:
    metrics = made()
    scores = [AdScore("a", 0.9, PairStatus.OK, truncated=True)]
    metrics.request_scored(scores, StageTimes(0, 0, 0, 0), slack_s=1, probe=True)
    assert value(metrics, "adrel_pairs_total", status="ok") == 1
    assert value(metrics, "adrel_truncated_pairs_total") == 0
    assert value(metrics, "adrel_score_count") == 0


def test_a_refused_request_is_counted_as_shed() -> None:
    metrics = made()
    metrics.request_done(ROUTE, "queue_full", 0.001)
    assert value(metrics, "adrel_requests_total", route=ROUTE, outcome="queue_full") == 1
    assert value(metrics, "adrel_shed_total", reason="queue_full") == 1


def test_a_request_is_in_flight_from_its_start_to_its_end() -> None:
    metrics = made()
    metrics.request_started()
    metrics.request_started()
    assert value(metrics, "adrel_requests_in_flight") == 2
    metrics.request_done(ROUTE, "ok", 0.001, n_pairs=20)
    assert value(metrics, "adrel_requests_in_flight") == 1
    metrics.request_done(ROUTE, "ok", 0.001)
    assert value(metrics, "adrel_requests_in_flight") == 0
    assert value(metrics, "adrel_request_pairs_count") == 1
    assert value(metrics, "adrel_request_pairs_sum") == 20


def test_drift_follows_the_scores_that_were_given() -> None:
    metrics = made()
    metrics.watch_score_drift([0.1] * 10, lambda: 0.0)
    score = [AdScore("a", 0.95, PairStatus.CACHED, truncated=False)]
    metrics.request_scored(score * 1000, StageTimes(0, 0, 0, 0), slack_s=1)
    assert value(metrics, "adrel_score_drift_scores") == 1000
    drift = value(metrics, "adrel_score_drift")
    assert drift is not None
    assert drift > 1


@pytest.mark.parametrize("timeout_ms", [10, 20, 30, 50, 100, 200, 300])
def test_a_usual_timeout_is_the_edge_of_a_bucket(timeout_ms: int) -> None:
    assert timeout_ms / 1000 in SECONDS


def test_the_queue_is_read_when_the_metrics_are_scraped() -> None:
    metrics = made()
    waiting = [3]
    metrics.watch_queue(lambda: waiting[0], lambda: waiting[0] / 10, lambda: 1)
    assert value(metrics, "adrel_queue_seconds") == 0.3
    assert value(metrics, "adrel_queue_pairs") == 3
    waiting[0] = 7
    assert value(metrics, "adrel_queue_pairs") == 7
    assert value(metrics, "adrel_batches_in_flight") == 1


def test_the_exposition_parses_and_has_no_series_that_answer_no_question() -> None:
    text = generate_latest(made().registry).decode()
    names = {
        sample.name for family in text_string_to_metric_families(text) for sample in family.samples
    }
    assert not [name for name in names if name.endswith("_created")]


def test_only_the_model_that_serves_now_is_told_of() -> None:
    metrics = made()
    facts = {"precision": "int8", "provider": "cpu"}
    metrics.model_serves(name="m", version="1", since_s=5.0, **facts)
    metrics.model_serves(name="m", version="2", since_s=7.0, **facts)
    [info] = [one for one in metrics.registry.collect() if one.name == "adrel_model_info"]
    assert [(one.labels["version"], one.value) for one in info.samples] == [("2", 1)]
    assert value(metrics, "adrel_model_loaded_timestamp_seconds") == 7


def test_another_models_caches_are_read_in_place_of_the_old_ones() -> None:
    metrics = made()
    metrics.watch_caches(FixedCache(2**16, 5), FixedCache(2**15, 100))
    wider = FixedCache(2**17, 9)
    metrics.watch_caches(wider, FixedCache(2**15, 100))
    assert value(metrics, "adrel_cache_bytes", cache="scores") == wider.n_bytes


def test_reloads_are_counted_by_how_they_ended() -> None:
    metrics = made()
    assert value(metrics, "adrel_reloads_total", result="refused") == 0
    metrics.reload_ended(ReloadResult.FAILED)
    assert value(metrics, "adrel_reloads_total", result="failed") == 1
