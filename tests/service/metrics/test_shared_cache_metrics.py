from __future__ import annotations

from service.shared_cache.breaker import BreakerState
from service.shared_cache.counts import LookupResult, SharedCacheCounts, WriteResult
from tests.service.metrics.conftest import made, value

NAME = "adrel_shared_cache"


def test_every_series_is_there_and_zero_where_no_cache_is_shared() -> None:
    metrics = made()
    for result in ("hit", "miss", "timeout", "error", "invalid", "skipped"):
        assert value(metrics, f"{NAME}_requests_total", result=result) == 0
    for result in ("written", "dropped", "failed"):
        assert value(metrics, f"{NAME}_writes_total", result=result) == 0
    for state in ("closed", "open", "half_open"):
        assert value(metrics, f"{NAME}_breaker", state=state) == 0
    assert value(metrics, f"{NAME}_duration_seconds_count") == 0


def test_counts_and_the_breaker_are_read_when_the_metrics_are_scraped() -> None:
    metrics, counts, state = made(), SharedCacheCounts(), [BreakerState.OPEN]
    metrics.shared_cache.watch(counts, lambda: state[0])
    counts.lookups[LookupResult.TIMEOUT] += 20
    counts.writes[WriteResult.DROPPED] += 3
    assert value(metrics, f"{NAME}_requests_total", result="timeout") == 20
    assert value(metrics, f"{NAME}_writes_total", result="dropped") == 3
    assert value(metrics, f"{NAME}_breaker", state="open") == 1
    state[0] = BreakerState.CLOSED
    assert value(metrics, f"{NAME}_breaker", state="open") == 0
    assert value(metrics, f"{NAME}_breaker", state="closed") == 1


def test_the_usual_wait_for_redis_is_the_edge_of_a_bucket() -> None:
    metrics = made()
    metrics.shared_cache.looked_up(0.0021)
    assert value(metrics, f"{NAME}_duration_seconds_bucket", le="0.002") == 0
    assert value(metrics, f"{NAME}_duration_seconds_bucket", le="0.003") == 1
