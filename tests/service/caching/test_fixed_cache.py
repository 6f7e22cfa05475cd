from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.caching.fixed_cache import WAYS, Digester, FixedCache

PAYLOAD_BYTES = 5
SET_BYTES = WAYS * (16 + 4 + PAYLOAD_BYTES)


def keys(*names: str) -> list[bytes]:
    return Digester().keys(names)


def payloads(*numbers: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    return np.array([[number] * PAYLOAD_BYTES for number in numbers], np.uint8)


def put(cache: FixedCache, name: str, number: int) -> None:
    cache.insert(keys(name), payloads(number))


def get(cache: FixedCache, name: str) -> int | None:
    found, rows = cache.lookup(keys(name))
    return int(rows[0, 0]) if found[0] else None


def test_what_was_put_in_is_found_and_nothing_else_is() -> None:
    cache = FixedCache(100 * SET_BYTES, PAYLOAD_BYTES)
    cache.insert(keys("a", "b"), payloads(1, 2))
    found, rows = cache.lookup(keys("b", "c", "a"))
    assert found.tolist() == [True, False, True]
    assert (rows[0] == 2).all()
    assert (rows[2] == 1).all()


def test_a_second_entry_of_the_same_key_replaces_the_first() -> None:
    cache = FixedCache(SET_BYTES, PAYLOAD_BYTES)
    put(cache, "a", 1)
    put(cache, "a", 2)
    assert get(cache, "a") == 2
    assert (cache.counts.entries, cache.counts.evictions) == (1, 0)


def test_the_least_recently_used_entry_of_a_full_set_makes_room() -> None:
    cache = FixedCache(SET_BYTES, PAYLOAD_BYTES)  # one set
    for number in range(WAYS):
        put(cache, str(number), number)
        get(cache, str(number))
    get(cache, "0")
    put(cache, "new", 99)
    assert get(cache, "new") == 99
    assert get(cache, "0") == 0
    assert get(cache, "1") is None
    assert (cache.counts.entries, cache.counts.evictions) == (WAYS, 1)


def test_ages_stay_right_when_the_counter_starts_again() -> None:
    cache = FixedCache(SET_BYTES, PAYLOAD_BYTES)
    cache._now = 2**32 - 12
    for number in range(WAYS):
        put(cache, str(number), number)
        get(cache, str(number))
    put(cache, "new", 99)
    assert get(cache, "0") is None
    assert get(cache, "7") == 7


def test_the_memory_is_taken_at_the_start_and_stays_within_the_budget() -> None:
    budget = 10 * SET_BYTES + 77
    cache = FixedCache(budget, PAYLOAD_BYTES)
    before = cache.n_bytes
    assert budget - SET_BYTES < before <= budget
    for number in range(1000):
        put(cache, str(number), number % 256)
    assert cache.n_bytes == before
    assert cache.counts.entries == 10 * WAYS


@pytest.mark.parametrize("budget_bytes", [0, SET_BYTES - 1])
def test_without_room_for_a_set_nothing_is_kept(budget_bytes: int) -> None:
    cache = FixedCache(budget_bytes, PAYLOAD_BYTES)
    put(cache, "a", 1)
    assert get(cache, "a") is None
    assert not cache.enabled
    assert (cache.n_bytes, cache.counts.misses) == (0, 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 255)), min_size=1, max_size=80))
def test_a_hit_is_always_the_last_entry_of_its_key(entries: list[tuple[int, int]]) -> None:
    cache, last = FixedCache(2 * SET_BYTES, PAYLOAD_BYTES), {}
    for key, number in entries:
        put(cache, str(key), number)
        last[key] = number
    for key, number in last.items():
        assert get(cache, str(key)) in (None, number)
    assert get(cache, str(entries[-1][0])) == entries[-1][1]


texts = st.tuples(*[st.text(alphabet="ab", max_size=2)] * 3)


@given(texts, texts)
def test_two_keys_are_equal_only_where_all_parts_are(
    one: tuple[str, str, str], other: tuple[str, str, str]
) -> None:
    [first], [second] = (Digester(a, b).keys([c]) for a, b, c in (one, other))
    assert (first == second) == (one == other)


def test_text_that_is_no_valid_unicode_has_a_key_too() -> None:
    assert len(Digester("\ud800").keys(["\udfff"])[0]) == 16


def test_hits_and_misses_are_counted() -> None:
    cache = FixedCache(10 * SET_BYTES, PAYLOAD_BYTES)
    put(cache, "a", 1)
    cache.lookup(keys("a", "b", "a"))
    assert (cache.counts.hits, cache.counts.misses) == (2, 1)


@pytest.mark.parametrize("budget_bytes", [10**17, 10**24])
def test_more_memory_than_there_is_is_one_kind_of_error(budget_bytes: int) -> None:
    with pytest.raises(MemoryError):
        FixedCache(budget_bytes, PAYLOAD_BYTES)
