"""JSON Lines and CSV as tables: rows are found by their format, parts by bytes and lines."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from service.bulk.column_kinds import ColumnKinds
from service.bulk.errors import InputUnusable
from service.bulk.lines import Line, Lines
from service.bulk.table import ColumnKind, InputRow, PartSize, PartSpec, Row, Survey, stamp_of

STRING: ColumnKind = "string"


class TextFormat(Protocol):
    """Finds the rows among the lines of a file.

    `columns` is empty where each row has its own, else known once the file has been started.
    """

    @property
    def columns(self) -> Sequence[str]:
        """Names of the header, if there is one."""

    def start(self, lines: Lines) -> None:
        """Read what stands before the rows.

        Raises:
            ValueError: It is not a table of pairs.
        """

    def row(self, number: int, first: Line, lines: Lines) -> InputRow | None:
        """The row that starts with this line; None for a blank one.

        Args:
            number: Of the row, if it is one.
            first: Taken off `lines`.
            lines: What follows.
        """


@dataclass(frozen=True, slots=True)
class TextBlock:
    """The rows of a part of a text file."""

    rows: Sequence[InputRow]

    def carried(self, indices: Sequence[int]) -> list[Row]:
        """All columns of some rows that could be read."""
        return [self.rows[index].fields or {} for index in indices]


class TextTable:
    """A JSON Lines or CSV file; UTF-8, with or without a byte order mark."""

    def __init__(self, path: Path, text_format: TextFormat, limit_bytes: int) -> None:
        """Read nothing yet.

        Args:
            path: The file.
            text_format: Its rows.
            limit_bytes: Longest row; longer ones are set aside.
        """
        self.path = path
        self._format = text_format
        self._limit_bytes = limit_bytes
        self._has_started = False

    def survey(self, size: PartSize, *, with_columns: bool) -> Survey:
        """Look through all of it.

        Raises:
            InputUnusable: It cannot be read, or has not the columns that pairs need.
        """
        digest, kinds = hashlib.sha256(), ColumnKinds()
        starts: list[tuple[Line, InputRow]] = []  # first row of each part
        n_rows = 0
        try:
            stamp = stamp_of(self.path)
            with self.path.open("rb") as file:
                lines = Lines(file, self._limit_bytes, on_bytes=digest.update)
                self._start(lines)
                for line, row in self._rows(lines, 1):
                    if with_columns and row.fields is not None and not self._format.columns:
                        kinds.add(row.fields)
                    if not starts or _is_full(starts[-1], line, row, size):
                        starts.append((line, row))
                    n_rows = row.number
        except OSError as error:
            raise InputUnusable(
                f"{self.path}: cannot be read: {error.strerror or error}"
            ) from error
        ends = [row.number for _, row in starts[1:]] + [n_rows + 1]
        parts = [
            PartSpec(number, row.number, end - row.number, line.start, line.number)
            for number, ((line, row), end) in enumerate(zip(starts, ends, strict=False))
        ]
        columns = kinds.found or dict.fromkeys(self._format.columns, STRING)
        return Survey(digest.hexdigest(), stamp, columns, parts)

    def read(self, part: PartSpec) -> TextBlock:
        """The rows of a part."""
        with self.path.open("rb") as file:
            if not self._has_started:
                self._start(Lines(file, self._limit_bytes))
            file.seek(part.start)
            lines = Lines(file, self._limit_bytes, part.first_line)
            rows = itertools.islice(self._rows(lines, part.first_row), part.n_rows)
            return TextBlock([row for _, row in rows])

    def _start(self, lines: Lines) -> None:
        try:
            self._format.start(lines)
        except ValueError as error:
            raise InputUnusable(f"{self.path}: {error}") from error
        self._has_started = True

    def _rows(self, lines: Lines, first_number: int) -> Iterator[tuple[Line, InputRow]]:
        number = first_number
        while (line := lines.take()) is not None:
            row = self._format.row(number, line, lines)
            if row is not None:
                yield line, row
                number += 1


def _is_full(first: tuple[Line, InputRow], line: Line, row: InputRow, size: PartSize) -> bool:
    first_line, first_row = first
    return (
        row.number - first_row.number >= size.rows
        or line.start - first_line.start >= size.text_bytes
    )
