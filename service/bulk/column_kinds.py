"""What the columns of rows without a schema hold, and how a cell of text says it."""

from __future__ import annotations

import base64
import json
import math

from service.bulk.table import TEXT_COLUMNS, ColumnKind, Row

INT64 = range(-(2**63), 2**63)


class ColumnKinds:
    """Learns names and kinds from one row after the other.

    Attributes:
        found: Names in order of appearance. A column of which no row has a value is `string`.
    """

    def __init__(self) -> None:
        self.found: dict[str, ColumnKind] = {}
        self._seen: dict[str, ColumnKind] = {}

    def add(self, row: Row) -> None:
        """Take a row into account."""
        for name, value in row.items():
            if name not in self.found:
                self.found[name] = "string"
            # Rows in which these are no text are set aside.
            if value is None or name in TEXT_COLUMNS:
                continue
            kind, before = _kind_of(value), self._seen.get(name)
            if kind != before:
                self._seen[name] = self.found[name] = _merged(kind, before)


def _kind_of(value: object) -> ColumnKind:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case float():
            return "double"
        case int() if value in INT64:
            return "int64"
        case _:
            return "json"


def _merged(kind: ColumnKind, before: ColumnKind | None) -> ColumnKind:
    if before is None:
        return kind
    return "double" if {kind, before} == {"int64", "double"} else "json"


def cell_text(value: object) -> str:
    """A value as a cell of CSV: text as it is, nothing for null, all else as JSON."""
    if isinstance(value, str):
        return value
    text = json_text(value)
    return "" if text == "null" else text


def json_text(value: object) -> str:
    """As JSON. What JSON has no word for: NaN becomes null, bytes base64, dates and others text."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_spelled)
    except ValueError:  # Parquet's numbers may be not finite
        return json.dumps(_with_nulls(value), ensure_ascii=False, default=_spelled)


def _spelled(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _with_nulls(value: object) -> object:
    match value:
        case float() if not math.isfinite(value):
            return None
        case dict():
            return {name: _with_nulls(part) for name, part in value.items()}
        case list():
            return [_with_nulls(part) for part in value]
        case _:
            return value
