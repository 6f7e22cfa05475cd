from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.shared_cache.entry import FORMAT, EntryFormat, machine_of

ONE, OTHER = b"1" * 16, b"2" * 16

finite = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(finite, min_size=1, max_size=5), st.booleans())
def test_a_score_comes_back_to_the_last_bit(logits: list[float], truncated: bool) -> None:
    entries = EntryFormat("v1", "m", len(logits))
    row = np.array(logits, np.float32)
    found = entries.unpack([ONE, OTHER], [None, entries.pack(OTHER, row, truncated)])
    assert found.rows == [1]
    assert found.logits.dtype == np.float32
    assert found.logits.tobytes() == row.tobytes()
    assert found.truncated == [truncated]
    assert found.n_invalid == 0


def value() -> bytes:
    return EntryFormat("v1", "m", 2).pack(ONE, np.array([1.5, -2], np.float32), truncated=True)


def test_an_entry_is_small() -> None:
    assert len(value()) == 14
    assert len(EntryFormat("07a79ee3df85", "af0e980d", 2).key(ONE)) == 46


@given(st.integers(0, 13), st.integers(1, 255))
def test_a_value_with_any_byte_changed_is_invalid(place: int, change: int) -> None:
    damaged = bytearray(value())
    damaged[place] ^= change
    found = EntryFormat("v1", "m", 2).unpack([ONE], [bytes(damaged)])
    assert (found.rows, found.n_invalid) == ([], 1)
    assert found.logits.shape == (0, 2)


@given(st.one_of(st.binary(max_size=40), st.integers(), st.text(), st.lists(st.binary())))
def test_what_is_none_of_ours_is_invalid(foreign: object) -> None:
    found = EntryFormat("v1", "m", 2).unpack([ONE, ONE], [foreign, value()])
    assert (found.rows, found.n_invalid) == ([1], 1)


@pytest.mark.parametrize("logit", [np.nan, np.inf, -np.inf])
def test_a_score_that_is_no_number_is_invalid_whoever_wrote_it(logit: float) -> None:
    entries = EntryFormat("v1", "m", 2)
    written = entries.pack(ONE, np.array([0, logit], np.float32), truncated=False)
    found = entries.unpack([ONE], [written])
    assert (found.rows, found.n_invalid) == ([], 1)


def test_an_unknown_format_is_invalid_though_its_checksum_is_right() -> None:
    entries = EntryFormat("v1", "m", 2)
    later = bytes((FORMAT + 1,)) + value()[1:-4]
    found = entries.unpack([ONE], [later + entries._checksum(ONE, later)])
    assert (found.rows, found.n_invalid) == ([], 1)


def test_the_answer_to_another_question_is_invalid() -> None:
    entries = EntryFormat("v1", "m", 2)
    assert entries.unpack([ONE], [value()]).rows == [0]
    assert entries.unpack([OTHER], [value()]).rows == []
    for foreign in (EntryFormat("v2", "m", 2), EntryFormat("v1", "n", 2)):
        assert foreign.unpack([ONE], [value()]).n_invalid == 1


def test_models_and_machines_share_no_keys() -> None:
    formats = [EntryFormat(v, m, 1) for v in ("v1", "v2") for m in ("m", "n")]
    assert len({entries.key(ONE) for entries in formats}) == 4


def test_machines_are_the_same_where_every_bit_is() -> None:
    logits = np.array([[0.1], [2]], np.float32)
    assert machine_of(logits) == machine_of(logits.copy())
    assert machine_of(logits) != machine_of(np.nextafter(logits, np.float32(9)))
