from __future__ import annotations

import pytest

from model_export.report.number_text import limit, number, signed


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0"),
        (0.01, "0.0100"),
        (1e-12, "1.00e−12"),  # noqa: RUF001  # the minus sign
        (0.99914, "0.99914"),
        (1.0, "1.00000"),
        (1172, "1,172"),
        (-0.5, "−0.500"),  # noqa: RUF001  # the minus sign
        (1234.5, "1,234"),
        (None, "–"),  # noqa: RUF001  # the dash
    ],
)
def test_measured_numbers_keep_three_digits(value: float | None, shown: str) -> None:
    assert number(value) == shown


def test_limits_are_shown_as_they_were_written() -> None:
    assert [limit(value) for value in (0.15, 1.0, 0.0)] == ["0.15", "1", "0"]


def test_a_small_change_is_not_shown_as_none() -> None:
    assert signed(0.0, 4) == "no change"
    assert signed(1e-6, 4) == "less than 0.0001 apart"
    assert signed(-0.0123, 4) == "−0.0123"  # noqa: RUF001  # the minus sign
    assert signed(0.0123, 4) == "+0.0123"
    assert signed(None, 4) == "–"  # noqa: RUF001  # the dash
