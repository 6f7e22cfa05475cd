from __future__ import annotations

import numpy as np

from service.caching.score_cache import ScoreCache

MIB = 2**20


def test_logits_come_back_to_the_last_bit_with_the_flag() -> None:
    cache = ScoreCache(MIB, 3, "v1")
    keys = cache.keys("red shoe", ["ad one", "ad two", "ad three"])
    logits = np.array([[1.1, -2.2, 3.3e-30], [np.pi, -0.0, 1e30]], np.float32)
    cache.insert(keys[:2], list(logits), [False, True])
    found, values, truncated = cache.lookup(keys)
    assert found.tolist() == [True, True, False]
    assert values[:2].tobytes() == logits.tobytes()
    assert truncated[:2].tolist() == [False, True]


def test_another_model_or_query_finds_nothing() -> None:
    cache, other = ScoreCache(MIB, 1, "v1"), ScoreCache(MIB, 1, "v2")
    assert cache.keys("q", ["ad"]) == ScoreCache(0, 1, "v1").keys("q", ["ad"])
    assert cache.keys("q", ["ad"]) != other.keys("q", ["ad"])
    assert cache.keys("q", ["ad"]) != cache.keys("r", ["ad"])
    assert cache.keys("q a", ["d"]) != cache.keys("q", ["ad"])


def test_another_models_cache_takes_the_same_memory_where_it_fits_and_no_score() -> None:
    cache = ScoreCache(MIB, 1, "v1")
    cache.insert(cache.keys("q", ["ad"]), [np.ones(1, np.float32)], [False])
    after = ScoreCache(MIB, 1, "v2", before=cache)
    assert after.store is cache.store
    assert not after.lookup(after.keys("q", ["ad"]))[0].any()
    again = ScoreCache(MIB, 1, "v1", before=after)
    assert again.lookup(again.keys("q", ["ad"]))[0].all()
    assert ScoreCache(MIB, 3, "v3", before=cache).store is not cache.store
