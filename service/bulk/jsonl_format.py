"""JSON Lines: one object a line."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

from service.bulk.lines import Line, Lines
from service.bulk.table import InputRow, Row

MAX_DEPTH = 64  # of values in values; writing them again recurses
SHOWN_CHARS = 1000


class JsonlFormat:
    """Rows are objects. Strict as the API is: no field twice, no NaN, nothing but Unicode text."""

    columns = ()  # each row has its own

    def __init__(self, limit_bytes: int) -> None:
        """Nothing is to be known beforehand.

        Args:
            limit_bytes: Longest row.
        """
        self._limit_bytes = limit_bytes

    def start(self, lines: Lines) -> None:
        """Nothing stands before the rows."""

    def row(self, number: int, first: Line, lines: Lines) -> InputRow | None:  # noqa: ARG002  # its protocol's
        """The row on this line; None for a blank one."""
        if not first.content.strip():
            return None
        try:
            if first.too_long:
                raise ValueError(f"the row is over the limit of {self._limit_bytes} bytes")
            return InputRow(number, first.number, _parsed(first.content))
        except (ValueError, RecursionError) as error:
            raw = first.content.decode(errors="replace").strip()[:SHOWN_CHARS]
            return InputRow(number, first.number, None, _explained(error), raw)


def _parsed(content: bytes) -> Row:
    row = json.loads(
        content.decode(),
        parse_constant=_no_number,
        parse_float=_finite,
        object_pairs_hook=_fields_given_once,
    )
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    # Few lines have what these look for.
    if b"\\u" in content:
        json.dumps(row, ensure_ascii=False).encode()  # halves of surrogate pairs are no text
    if content.count(b"[") + content.count(b"{") > MAX_DEPTH and _depth(row) > MAX_DEPTH:
        raise ValueError(f"values are nested deeper than {MAX_DEPTH}")
    return row


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits} is no finite number")
    return number


def _fields_given_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice}: is given twice in one object")
    return fields


def _depth(value: object) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(_depth, value), default=0)
    return 0


def _explained(error: Exception) -> str:
    match error:
        case UnicodeDecodeError():
            return f"is not UTF-8 text: {error.reason}"
        case UnicodeEncodeError():
            return "has half of a surrogate pair, which is no Unicode text"
        case json.JSONDecodeError():
            return f"not JSON, of which one object a line is expected: {error}"
        case RecursionError():
            return f"values are nested deeper than {MAX_DEPTH}"
        case _:
            return str(error)
