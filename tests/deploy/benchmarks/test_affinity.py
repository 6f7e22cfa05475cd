from __future__ import annotations

from deploy.benchmarks.bench_affinity import _hit_share, _request
from deploy.benchmarks.mixed_pairs import MixedRequest

ADDRESS = ("127.0.0.1", 8000)


def counts(hit: float, joined: float, miss: float) -> dict[str, float]:
    return {"hit": hit, "joined": joined, "miss": miss}


def test_what_was_counted_before_does_not_count_and_a_joined_pair_was_not_computed() -> None:
    before = [counts(100, 0, 100), counts(0, 0, 0)]
    after = [counts(105, 1, 103), counts(0, 0, 1)]
    assert _hit_share(before, after) == (5 + 1) / (5 + 1 + 3 + 1)


def test_requests_of_one_query_have_one_key_or_none() -> None:
    first, second = (MixedRequest("red shoe", [ad]) for ad in ("shoe", "lamp"))
    lines = [_request(one, ADDRESS, with_key=True).split(b"\r\n") for one in (first, second)]
    keys = [line for one in lines for line in one if line.startswith(b"X-Affinity-Key: ")]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert b"X-Affinity-Key" not in _request(first, ADDRESS, with_key=False)
