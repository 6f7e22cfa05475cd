from __future__ import annotations

import numpy as np

from service.caching.fixed_cache import Digester, FixedCache
from service.domain import AdScore, PairStatus, ReloadResult, StageTimes
from tests.service.metrics.conftest import made, value


def test_the_caches_are_read_when_the_metrics_are_scraped() -> None:
    metrics = made()
    scores, tokens = FixedCache(2**16, 5), FixedCache(2**15, 100)
    metrics.model.watch_caches(scores, tokens)
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


def test_drift_follows_the_scores_that_were_given() -> None:
    metrics = made()
    metrics.model.watch_score_drift([0.1] * 10, lambda: 0.0)
    score = [AdScore("a", 0.95, PairStatus.CACHED, truncated=False)]
    metrics.requests.scored(score * 1000, StageTimes(0, 0, 0, 0), slack_s=1)
    assert value(metrics, "adrel_score_drift_scores") == 1000
    drift = value(metrics, "adrel_score_drift")
    assert drift is not None
    assert drift > 1


def test_only_the_model_that_serves_now_is_told_of() -> None:
    metrics = made()
    facts = {"precision": "int8", "provider": "cpu"}
    metrics.model.serves(name="m", version="1", since_s=5.0, **facts)
    metrics.model.serves(name="m", version="2", since_s=7.0, **facts)
    [info] = [one for one in metrics.registry.collect() if one.name == "adrel_model_info"]
    assert [(one.labels["version"], one.value) for one in info.samples] == [("2", 1)]
    assert value(metrics, "adrel_model_loaded_timestamp_seconds") == 7


def test_another_models_caches_are_read_in_place_of_the_old_ones() -> None:
    metrics = made()
    metrics.model.watch_caches(FixedCache(2**16, 5), FixedCache(2**15, 100))
    wider = FixedCache(2**17, 9)
    metrics.model.watch_caches(wider, FixedCache(2**15, 100))
    assert value(metrics, "adrel_cache_bytes", cache="scores") == wider.n_bytes


def test_reloads_are_counted_by_how_they_ended() -> None:
    metrics = made()
    assert value(metrics, "adrel_reloads_total", result="refused") == 0
    metrics.model.reload_ended(ReloadResult.FAILED)
    assert value(metrics, "adrel_reloads_total", result="failed") == 1
