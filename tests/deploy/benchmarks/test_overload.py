from __future__ import annotations

import json

from deploy.benchmarks.bench_cache import zipf_trace
from deploy.benchmarks.bench_overload import judge
from deploy.benchmarks.load_client import Exchange
from deploy.benchmarks.mixed_pairs import MixedRequest


def exchange(latency_ms: float, status: int, *scores: float | None) -> Exchange:
    body = json.dumps({"scores": [{"score": score} for score in scores]}).encode()
    return Exchange(0, 0.0, latency_ms / 1000, status, body)


def test_good_is_complete_and_in_time_by_the_callers_clock() -> None:
    exchanges = [
        exchange(90, 200, 0.5, 0.1),
        exchange(99, 200, 0.5, None),
        exchange(101, 200, 0.5, 0.1),
        exchange(103, 200, 0.5, 0.1),
        exchange(1, 429),
        exchange(104, 504),
    ]
    verdict = judge(exchanges, timeout_ms=100, seconds=2)
    assert verdict["outcomes"] == {"429": 1, "504": 1, "good": 1, "late": 2, "partial": 1}
    assert verdict["good_per_s"] == 0.5
    assert verdict["late_share_of_admitted"] == 2 / 5


def test_a_zipf_trace_asks_for_few_queries_often_and_repeats_no_ad_in_a_request() -> None:
    catalogue = [MixedRequest(f"q{i}", [f"ad {i} {n}" for n in range(20)]) for i in range(100)]
    trace = zipf_trace(catalogue, 2000, 20)
    queries = [request.query for request in trace]
    assert queries.count("q0") > 10 * queries.count("q50")
    assert all(len(set(request.ads)) == len(request.ads) > 0 for request in trace)
