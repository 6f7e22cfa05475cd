"""How numbers are written for people."""

from __future__ import annotations

NONE = "–"  # noqa: RUF001  # a dash where there is no number
MINUS = "−"  # noqa: RUF001  # the sign, not a hyphen


def number(value: float | None) -> str:
    """A measured number: three significant digits, more near 1; a bare 0 only for zero itself."""
    if value is None:
        return NONE
    if value == 0:
        return "0"
    if isinstance(value, int):
        text = f"{value:,}"
    elif 0.99 <= abs(value) <= 1:
        text = f"{value:.5f}"
    else:
        text = f"{value:#.3g}" if abs(value) < 100 else f"{value:,.0f}"
    return text.replace("-", MINUS)


def limit(value: float) -> str:
    """A number that somebody chose, as it was written."""
    return f"{value:g}".replace("-", MINUS)


def signed(value: float | None, decimals: int) -> str:
    """With its sign, to `decimals` places; a change that rounds to nothing says so."""
    if value is None:
        return NONE
    if round(value, decimals) == 0:
        return "no change" if value == 0 else f"less than {10**-decimals:g} apart"
    return f"{value:+.{decimals}f}".replace("-", MINUS)
