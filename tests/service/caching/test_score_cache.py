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
