"""Parquet as a table: parts are slices of row groups, and columns keep their types."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.bulk.arrow import pyarrow
from service.bulk.errors import InputUnusable
from service.bulk.table import (
    TEXT_COLUMNS,
    ColumnKind,
    InputRow,
    PartSize,
    PartSpec,
    Row,
    Survey,
    require_pair_columns,
    stamp_of,
)


@dataclass(frozen=True, slots=True)
class ParquetBlock:
    """The rows of a part. `table` has all their columns, of any type."""

    rows: Sequence[InputRow]
    table: Any

    def carried(self, indices: Sequence[int]) -> list[Row]:
        """All columns of some rows."""
        return _as_rows(self.table.take(list(indices)), self.table.column_names)


class ParquetTable:
    """A Parquet file."""

    def __init__(self, path: Path) -> None:
        """Open it.

        Raises:
            ExtraMissing: pyarrow is not installed.
            InputUnusable: It cannot be read, or has not the columns that pairs need.
        """
        self.path = path
        self._arrow = pyarrow()
        try:
            self._file = self._arrow.parquet.ParquetFile(path)
        except (OSError, self._arrow.ArrowException) as error:
            raise InputUnusable(f"{path}: cannot be read as Parquet: {error}") from error
        self.schema = self._file.schema_arrow.remove_metadata()
        self._check_columns()
        metadata = self._file.metadata
        self._group_rows = [
            metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)
        ]
        self._next_row = 0  # of the file, where `_batches` stands
        self._batches: Iterator[Any] = iter(())

    def survey(self, size: PartSize, *, with_columns: bool) -> Survey:  # noqa: ARG002  # the schema is there anyway
        """Read all of it for its hash; where the parts are stands in its footer."""
        stamp = stamp_of(self.path)
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        columns: dict[str, ColumnKind] = dict.fromkeys(self.schema.names, "json")
        parts: list[PartSpec] = []
        first_row = 1
        for group, n_rows in enumerate(self._group_rows):
            for done in range(0, n_rows, size.rows):
                rows = min(size.rows, n_rows - done)
                parts.append(PartSpec(len(parts), first_row, rows, group, 0))
                first_row += rows
        return Survey(digest, stamp, columns, parts)

    def read(self, part: PartSpec) -> ParquetBlock:
        """The rows of a part; one that does not follow the last one is looked for in its group."""
        table = self._slice(part)
        names = [name for name in TEXT_COLUMNS if name in self.schema.names]
        rows = [
            InputRow(part.first_row + index, None, fields)
            for index, fields in enumerate(_as_rows(table, names))
        ]
        return ParquetBlock(rows, table)

    def _slice(self, part: PartSpec) -> Any:  # noqa: ANN401  # a pyarrow.Table
        if part.first_row != self._next_row:
            before = sum(self._group_rows[: part.start])
            self._begin(part.start, skip_rows=part.first_row - 1 - before)
        pieces, n_missing = [], part.n_rows
        while n_missing:
            batch = next(self._batches)
            if batch.num_rows > n_missing:
                self._batches = _then(batch.slice(n_missing), self._batches)
                batch = batch.slice(0, n_missing)
            pieces.append(batch)
            n_missing -= batch.num_rows
        self._next_row = part.first_row + part.n_rows
        return self._arrow.Table.from_batches(pieces, self.schema)

    def _begin(self, group: int, skip_rows: int) -> None:
        groups = list(range(group, len(self._group_rows)))
        self._batches = (
            batch.replace_schema_metadata()
            for batch in self._file.iter_batches(row_groups=groups, use_threads=False)
        )
        while skip_rows:
            batch = next(self._batches)
            if batch.num_rows > skip_rows:
                self._batches = _then(batch.slice(skip_rows), self._batches)
            skip_rows -= min(skip_rows, batch.num_rows)

    def _check_columns(self) -> None:
        try:
            require_pair_columns(self.schema.names)
        except ValueError as error:
            raise InputUnusable(f"{self.path}: {error}") from error
        for name in TEXT_COLUMNS:
            if name in self.schema.names:
                kind = self.schema.field(name).type
                if not _is_text(self._arrow.types, kind):
                    raise InputUnusable(f"{self.path}: the column {name!r} must be text, is {kind}")


def _then(first: Any, others: Iterator[Any]) -> Iterator[Any]:  # noqa: ANN401  # record batches
    yield first
    yield from others


def _is_text(types: Any, kind: Any) -> bool:  # noqa: ANN401  # pyarrow's
    if types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
        or types.is_null(kind)
    )


def _as_rows(table: Any, names: Sequence[str]) -> list[Row]:  # noqa: ANN401  # a pyarrow.Table
    columns = [_values(table.column(name)) for name in names]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:  # noqa: ANN401  # pyarrow's
    """Of each row; bytes where a file says text and holds none."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [_decoded(value) for value in column.cast("binary").to_pylist()]
    return values


def _decoded(value: bytes | None) -> str | bytes | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return value
