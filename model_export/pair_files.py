"""Files of rows, one row a pair: JSON Lines and CSV, read strictly, with line numbers."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, Literal

from model_export.column_names import COLUMNS, meant
from model_export.errors import BadPairsFile
from model_export.text_files import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PairsFormat = Literal["jsonl", "csv"]

Row = dict[str, Any]

NUMBER_COLUMNS = ("label", "grade", "max_grade", "score")
"""Columns of a CSV file whose cells are numbers; `raters` holds several, with spaces between."""

MOST_DIGITS = 300
"""Of a whole number; one with more may be beyond what a float holds."""


def format_of(path: Path) -> PairsFormat:
    """CSV for names that end in `.csv`, JSON Lines for all others."""
    return "csv" if path.suffix.lower() == ".csv" else "jsonl"


def read_rows(path: Path, file_format: PairsFormat | None = None) -> Iterator[tuple[int, Row]]:
    """Each row with the number of the line that it starts on, the first line being 1.

    Args:
        path: UTF-8 text, with or without a byte order mark.
        file_format: None goes by the name of the file.

    Raises:
        BadPairsFile: The file cannot be read or breaks the rules of its format; the message has
            the path, the line number and the reason.
    """
    if file_format is None and path.suffix.lower() == ".tsv":
        raise BadPairsFile(
            f"{path}: tabs do not separate columns here; make it CSV with commas (.csv), or JSON "
            "Lines"
        )
    content = read_text(path)
    if (file_format or format_of(path)) == "csv":
        return _csv_rows(path, content)
    return _json_rows(path, content)


def _json_rows(path: Path, content: str) -> Iterator[tuple[int, Row]]:
    # Not splitlines(): JSON strings may hold U+2028 and the like unescaped.
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line, object_pairs_hook=_object, parse_int=_whole_number)
        except json.JSONDecodeError as error:
            raise BadPairsFile(
                f"{path}, line {number}: not JSON, of which one object a line is expected: "
                f"{error.msg}, at character {error.colno}"
            ) from error
        except RecursionError as error:
            raise BadPairsFile(
                f"{path}, line {number}: its values are nested in each other too deeply to be read"
            ) from error
        except ValueError as error:
            raise BadPairsFile(f"{path}, line {number}: {error}") from error
        if not isinstance(row, dict):
            raise BadPairsFile(
                f"{path}, line {number}: expected a JSON object, got {type(row).__name__}"
            )
        yield number, row


def _object(fields: list[tuple[str, Any]]) -> Row:
    """An object of which no field is lost to another, and whose texts are text."""
    row = dict(fields)
    if len(row) < len(fields):
        names = [name for name, _ in fields]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the object names the key {repeated!r} twice")
    for name, value in fields:
        if isinstance(value, str) and "\0" in value:  # written as \u0000
            raise ValueError(f"{name!r} holds a NUL character, which no text has")
    return row


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise ValueError(
            f"a number has {len(digits):,} digits, and at most {MOST_DIGITS} can be read"
        )
    return int(digits)


def _csv_rows(path: Path, content: str) -> Iterator[tuple[int, Row]]:
    # newline="": a cell in quotes may hold line breaks, which stay as they are.
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    header: list[str] | None = None
    number = 1
    try:
        for cells in reader:
            if not any(cell.strip() for cell in cells):
                pass
            elif header is None:
                header = _header(cells)
            else:
                yield number, _typed(header, cells)
            number = reader.line_num + 1
    except (csv.Error, ValueError) as error:
        raise BadPairsFile(f"{path}, line {number}: {_explained(error)}") from error


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and any(separator in names[0] for separator in ";\t"):
        raise ValueError("the header has no commas: columns must be separated by commas")
    if not {"query", "title", "text"} & set(names):
        raise ValueError(
            f"the first line must be a header with 'query', 'title' or 'text', got {names}"
            f"{meant(names, COLUMNS)}"
        )
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the header names the column {repeated[0]!r} twice")
    return names


def _typed(header: list[str], cells: list[str]) -> Row:
    """A row as JSON would have it: empty cells left out, numbers as numbers."""
    if len(cells) != len(header):
        raise ValueError(f"has {len(cells)} cells, the header {len(header)}")
    row: Row = {}
    for name, cell in zip(header, cells, strict=True):
        if not cell.strip():
            continue
        if name in NUMBER_COLUMNS:
            row[name] = _to_number(name, cell)
        elif name == "raters":
            row[name] = [_to_number(name, part) for part in cell.split()]
        else:
            row[name] = cell
    return row


def _to_number(name: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{name!r} must be a number, got {cell.strip()!r}") from None


def _explained(error: Exception) -> str:
    if "unexpected end of data" in str(error):
        return 'a quote (") is opened here and never closed'
    if "expected after" in str(error):
        return f'a quote (") closes inside a cell; inside quotes write it twice: {error}'
    if "field limit" in str(error):
        # The limit is the interpreter's, for all threads: no pair is worth raising it.
        return (
            f"a cell has more than {csv.field_size_limit():,} characters, the most that one may "
            'have; was a quote (") opened before and never closed?'
        )
    return str(error)
