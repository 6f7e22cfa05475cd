"""A caller's arguments are judged by name when they are given, not when they are first used."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def number(name: str, value: object, least: float, most: float = math.inf, unit: str = "") -> float:
    """The value as a plain float, whatever kind of number it is.

    Args:
        name: Of the argument.
        value: What was given.
        least: The smallest that is taken.
        most: The largest.
        unit: For the message.

    Raises:
        TypeError: No number; a bool is none.
        ValueError: Out of range, or not finite.
    """
    takes = f"takes a number{unit and ' of '}{unit} {_range(least, most)}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name}: {takes}, got {described(value)}")
    try:
        plain = float(value)
    except OverflowError:  # a whole number of hundreds of digits
        plain = math.inf
    if not least <= plain <= most or plain == math.inf:
        raise ValueError(f"{name}: {takes}, got {value!r:.60}")
    return plain


def whole_number(name: str, value: object, least: int, most: float = math.inf) -> int:
    """The value, if it is a whole number in the range.

    Raises:
        TypeError: No whole number; a bool is none.
        ValueError: Out of range.
    """
    takes = f"takes a whole number {_range(least, most)}"
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: {takes}, got {described(value)}")
    if not least <= value <= most:
        raise ValueError(f"{name}: {takes}, got {value!r:.60}")
    return value


def instance(name: str, value: object, kind: type[T]) -> T:
    """The value, if it is one of a kind.

    Raises:
        TypeError: It is none.
    """
    if not isinstance(value, kind):
        raise TypeError(f"{name}: takes {kind.__name__}, got {described(value)}")
    return value


def function(name: str, value: F) -> F:
    """The value, if it can be called.

    Raises:
        TypeError: It cannot.
    """
    if not callable(value):
        raise TypeError(f"{name}: takes a function, got {described(value)}")
    return value


def described(value: object) -> str:
    """A value and its type, short enough for a message."""
    return "None" if value is None else f"{type(value).__name__} {value!r:.60}"


def _range(least: float, most: float) -> str:
    return f"of {least:g} or more" if most == math.inf else f"from {least:g} to {most:g}"
