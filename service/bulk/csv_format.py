"""CSV with a header: rows may go over several lines, and a wrong one costs no other row."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence

from service.bulk.lines import Line, Lines
from service.bulk.table import InputRow, require_pair_columns

SHOWN_CHARS = 1000


class CsvFormat:
    """Rows are cells under the names of the header, all of them text, kept as they are."""

    def __init__(self, limit_bytes: int) -> None:
        """Know nothing of the columns yet.

        Args:
            limit_bytes: Longest row.
        """
        self._limit_bytes = limit_bytes
        self.columns: Sequence[str] = ()
        # The module's own limit is one for the process, and lower.
        csv.field_size_limit(max(csv.field_size_limit(), limit_bytes))

    def start(self, lines: Lines) -> None:
        """Read the header.

        Raises:
            ValueError: There is none, or it has not the columns of pairs.
        """
        while (line := lines.take()) is not None:
            try:
                cells = self._cells(line, lines)
            except csv.Error as error:
                raise ValueError(f"the header cannot be read: {_explained(error)}") from error
            if any(cell.strip() for cell in cells):
                self.columns = _header(cells)
                return
        raise ValueError("is empty; the first line must be a header")

    def row(self, number: int, first: Line, lines: Lines) -> InputRow | None:
        """The row that starts with this line; None where all cells are blank.

        If it cannot be read, the next row is looked for on the very next line, so that a quote that
        is never closed does not swallow what follows.
        """
        try:
            cells = self._cells(first, lines)
            if not any(cells) or not any(cell.strip() for cell in cells):
                return None
            if len(cells) != len(self.columns):
                raise ValueError(f"has {len(cells)} cells, the header {len(self.columns)}")
        except (csv.Error, ValueError) as error:
            raw = first.content.decode(errors="replace").rstrip("\r\n")[:SHOWN_CHARS]
            return InputRow(number, first.number, None, _explained(error), raw)
        return InputRow(number, first.number, dict(zip(self.columns, cells, strict=True)))

    def _cells(self, first: Line, lines: Lines) -> list[str]:
        taken: list[Line] = []
        try:
            return next(csv.reader(self._texts(first, lines, taken), strict=True))
        except (csv.Error, ValueError):
            lines.put_back(taken)
            raise

    def _texts(self, first: Line, lines: Lines, taken: list[Line]) -> Iterator[str]:
        """As many lines as the reader asks for: more than one where a cell holds line breaks."""
        yield self._text(first)
        n_bytes = len(first.content)
        while (line := lines.take()) is not None:
            taken.append(line)
            n_bytes += len(line.content)
            try:
                text = self._text(line, n_bytes)
            except ValueError as error:
                raise ValueError(
                    f'a quote (") is opened here and not closed before line {line.number}, of '
                    f"which this is to be said: {_explained(error)}"
                ) from error
            yield text

    def _text(self, line: Line, n_bytes: int = 0) -> str:
        if line.too_long or n_bytes > self._limit_bytes:
            raise ValueError(f"the row is over the limit of {self._limit_bytes} bytes")
        if b"\0" in line.content:
            raise ValueError("holds a NUL character, which no text has")
        return line.content.decode()


def _header(cells: list[str]) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and any(separator in names[0] for separator in ";\t"):
        raise ValueError("the header has no commas: columns must be separated by commas")
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the header names the column {repeated[0]!r} twice")
    require_pair_columns(names)
    return names


def _explained(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text: {error.reason}"
    if "unexpected end of data" in str(error):
        return 'a quote (") is opened here and never closed'
    if "expected after" in str(error):
        return f'a quote (") closes inside a cell; inside quotes write it twice: {error}'
    return str(error)
