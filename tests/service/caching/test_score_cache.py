from __future__ import annotations

import numpy as np

from service.caching.score_cache import KEPT_AT_ONCE_PAIRS, ScoreCache

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


def test_what_is_kept_is_found_at_the_next_look() -> None:
    cache = ScoreCache(MIB, 1, "v1")
    one, other = cache.keys("q", ["one", "other"])
    cache.keep(one, np.array([1.5], np.float32), truncated=True)
    found, logits, truncated = cache.lookup([one, other])
    assert found.tolist() == [True, False]
    assert (logits[0].tolist(), bool(truncated[0])) == ([1.5], True)


def test_what_is_kept_goes_into_the_store_in_steps() -> None:
    cache = ScoreCache(MIB, 1, "v1")
    keys = cache.keys("q", [str(number) for number in range(KEPT_AT_ONCE_PAIRS)])
    for key in keys[:-1]:
        cache.keep(key, np.ones(1, np.float32), truncated=False)
    assert cache.store.counts.entries == 0
    cache.keep(keys[-1], np.ones(1, np.float32), truncated=False)
    assert cache.store.counts.entries > KEPT_AT_ONCE_PAIRS / 2  # some may share a place


def test_without_memory_nothing_is_kept_not_even_for_a_moment() -> None:
    cache = ScoreCache(0, 1, "v1")
    [key] = cache.keys("q", ["ad"])
    cache.keep(key, np.ones(1, np.float32), truncated=False)
    assert cache._fresh == []
    assert not cache.lookup([key])[0].any()


def test_a_pair_has_the_same_key_whether_its_query_is_the_requests_or_its_own() -> None:
    cache = ScoreCache(0, 1, "v1")
    assert cache.keys_of_pairs(["q", "r"], ["ad", "ad"]) == [
        *cache.keys("q", ["ad"]),
        *cache.keys("r", ["ad"]),
    ]
