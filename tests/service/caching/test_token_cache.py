from __future__ import annotations

import numpy as np

from service.caching.token_cache import TokenCache


def ids(*values: int) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(values, np.int32)


def test_ids_come_back_with_their_text_and_no_other() -> None:
    cache = TokenCache(2**20, 4)
    cache.insert(["a", "b", ""], [ids(7, 8, 9, 250_001), ids(1), ids()])
    found = [None if row is None else row.tolist() for row in cache.lookup(["b", "x", "a", ""])]
    assert found == [[1], None, [7, 8, 9, 250_001], []]


def test_a_text_of_too_many_tokens_is_not_kept() -> None:
    cache = TokenCache(2**20, 4)
    cache.insert(["long", "short"], [ids(1, 2, 3, 4, 5), ids(1)])
    long, short = cache.lookup(["long", "short"])
    assert long is None
    assert short is not None


def test_a_cache_without_memory_answers_nothing() -> None:
    cache = TokenCache(0, 4)
    cache.insert(["a"], [ids(1)])
    assert cache.lookup(["a"]) == [None]


def test_another_tokenizers_ids_are_never_found_in_the_memory_they_share() -> None:
    cache = TokenCache(2**20, 4, "one")
    cache.insert(["a"], [ids(1)])
    other = TokenCache(2**20, 4, "other", before=cache)
    assert other.store is cache.store
    assert other.lookup(["a"]) == [None]
    assert TokenCache(2**20, 4, "one", before=other).lookup(["a"])[0] is not None
    assert TokenCache(2**20, 5, "one", before=cache).store is not cache.store
