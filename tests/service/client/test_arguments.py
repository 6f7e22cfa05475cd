from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest

from service.client.arguments import function, instance, number, whole_number


@pytest.mark.parametrize("value", [50, 50.0, np.float32(50), np.int64(50)])
def test_any_kind_of_number_becomes_a_plain_float(value: object) -> None:
    assert number("timeout_ms", value, 0) == 50.0
    assert type(number("timeout_ms", value, 0)) is float


@pytest.mark.parametrize("value", [None, "50", True, Decimal(50), [50]])
def test_what_is_no_number_is_told_what_is_taken(value: object) -> None:
    with pytest.raises(TypeError, match="timeout_ms: takes a number of milliseconds from 0 to 9"):
        number("timeout_ms", value, 0, 9, "milliseconds")


@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, -math.inf, 10**400])
def test_a_number_out_of_range_is_told_the_range(value: float) -> None:
    with pytest.raises(ValueError, match="base_ms: takes a number of 0 or more, got"):
        number("base_ms", value, 0)


def test_the_ends_of_a_range_are_in_it() -> None:
    assert [number("x", value, 0, 1) for value in (0, 1)] == [0, 1]
    assert [whole_number("x", value, 1, 10) for value in (1, 10)] == [1, 10]


@pytest.mark.parametrize("value", [2.0, "2", True, None])
def test_half_a_connection_is_none(value: object) -> None:
    with pytest.raises(TypeError, match="max_in_flight: takes a whole number of 1 or more, got"):
        whole_number("max_in_flight", value, 1)


def test_a_whole_number_out_of_range_is_told_the_range() -> None:
    with pytest.raises(ValueError, match="max_attempts: takes a whole number from 1 to 10, got 11"):
        whole_number("max_attempts", 11, 1, 10)


def test_another_type_is_told_both() -> None:
    assert instance("query", "shoe", str) == "shoe"
    with pytest.raises(TypeError, match="query: takes str, got bytes b'shoe'"):
        instance("query", b"shoe", str)


def test_what_cannot_be_called_is_no_function() -> None:
    assert function("clock", math.ceil) is math.ceil
    with pytest.raises(TypeError, match="clock: takes a function, got None"):
        function("clock", None)  # type: ignore[type-var]  # wrong on purpose


def test_a_long_value_does_not_fill_the_log() -> None:
    with pytest.raises(TypeError) as caught:
        instance("query", ["shoe"] * 1000, str)
    assert len(str(caught.value)) < 120
