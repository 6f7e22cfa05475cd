"""Parts of the output as bytes, and the whole of it from its parts."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import Any, BinaryIO, Protocol

from service.bulk.arrow import pyarrow
from service.bulk.column_kinds import cell_text, json_text
from service.bulk.parquet_table import ParquetBlock
from service.bulk.table import (
    SCORE_COLUMNS,
    Block,
    ColumnKind,
    FileFormat,
    carried_names,
)


@dataclass(frozen=True, slots=True)
class ScoredRows:
    """The rows of a part that have a score, in order.

    Attributes:
        indices: Of the rows in their block.
        scores: Of each, in 0-1.
        truncated: Some of its text did not fit.
        model_version: That scored them.
    """

    indices: Sequence[int]
    scores: Sequence[float]
    truncated: Sequence[bool]
    model_version: str

    def added(self) -> list[dict[str, Any]]:
        """`SCORE_COLUMNS` of each row."""
        return [
            dict(zip(SCORE_COLUMNS, (score, self.model_version, truncated), strict=True))
            for score, truncated in zip(self.scores, self.truncated, strict=True)
        ]


class OutputFormat(Protocol):
    """Writes one format."""

    def part(self, block: Block, scored: ScoredRows) -> bytes:
        """A file of its own with the scored rows of a block."""

    def whole(self, parts: Sequence[Path], out: BinaryIO) -> None:
        """One file from all parts, of which there may be none."""


class JsonlOutput:
    """An object a line; the scores come last."""

    def part(self, block: Block, scored: ScoredRows) -> bytes:
        """A file of its own with the scored rows of a block."""
        rows = zip(block.carried(scored.indices), scored.added(), strict=True)
        lines = (
            json_text({name: row[name] for name in carried_names(list(row))} | added)
            for row, added in rows
        )
        return "".join(f"{line}\n" for line in lines).encode()

    def whole(self, parts: Sequence[Path], out: BinaryIO) -> None:
        """One file from all parts, of which there may be none."""
        for path in parts:
            with path.open("rb") as part:
                copyfileobj(part, out)


class CsvOutput:
    """A header, and a line for each row; what is no text is written as JSON."""

    def __init__(self, columns: Sequence[str]) -> None:
        """Fix the columns.

        Args:
            columns: Of the input.
        """
        self._carried = carried_names(columns)

    def part(self, block: Block, scored: ScoredRows) -> bytes:
        """A file of its own with the scored rows of a block."""
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([*self._carried, *SCORE_COLUMNS])
        for row, added in zip(block.carried(scored.indices), scored.added(), strict=True):
            cells = [row.get(name) for name in self._carried] + list(added.values())
            writer.writerow([cell_text(cell) for cell in cells])
        return text.getvalue().encode()

    def whole(self, parts: Sequence[Path], out: BinaryIO) -> None:
        """One file from all parts, of which there may be none."""
        header = self._header()
        out.write(header)
        for path in parts:
            with path.open("rb") as part:
                part.seek(len(header))
                copyfileobj(part, out)

    def _header(self) -> bytes:
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerow([*self._carried, *SCORE_COLUMNS])
        return text.getvalue().encode()


class ParquetOutput:
    """Columns of Parquet keep their types; those of other formats get the one that holds all."""

    def __init__(self, columns: Mapping[str, ColumnKind], schema: Any = None) -> None:  # noqa: ANN401  # a pyarrow.Schema
        """Fix the columns.

        Args:
            columns: Of the input, with their kinds.
            schema: Of the input, where it is Parquet.

        Raises:
            ExtraMissing: pyarrow is not installed.
        """
        self._arrow = arrow = pyarrow()
        types = {"string": arrow.string(), "int64": arrow.int64(), "double": arrow.float64(),
                 "bool": arrow.bool_(), "json": arrow.string()}  # fmt: skip
        self._kinds = columns
        self._names = carried_names(list(columns))
        fields = [
            arrow.field(name, types[columns[name]]) if schema is None else schema.field(name)
            for name in self._names
        ]
        added = zip(SCORE_COLUMNS, (arrow.float64(), arrow.string(), arrow.bool_()), strict=True)
        self._schema = arrow.schema([*fields, *(arrow.field(*column) for column in added)])

    def part(self, block: Block, scored: ScoredRows) -> bytes:
        """A file of its own with the scored rows of a block."""
        added = scored.added()
        columns = [self._arrow.array([row[name] for row in added]) for name in SCORE_COLUMNS]
        table = self._table(block, scored)
        arrays = [*table.columns, *columns]
        sink = io.BytesIO()
        self._arrow.parquet.write_table(
            self._arrow.Table.from_arrays(arrays, schema=self._schema), sink
        )
        return sink.getvalue()

    def whole(self, parts: Sequence[Path], out: BinaryIO) -> None:
        """One file from all parts, of which there may be none."""
        with self._arrow.parquet.ParquetWriter(out, self._schema) as writer:
            for path in parts:
                writer.write_table(self._arrow.parquet.ParquetFile(path).read())

    def _table(self, block: Block, scored: ScoredRows) -> Any:  # noqa: ANN401  # a pyarrow.Table
        if isinstance(block, ParquetBlock):
            return block.table.take(list(scored.indices)).select(self._names)
        rows = block.carried(scored.indices)
        values = {name: [self._value(name, row.get(name)) for row in rows] for name in self._names}
        fields = [self._schema.field(name) for name in self._names]
        return self._arrow.Table.from_pydict(values, schema=self._arrow.schema(fields))

    def _value(self, name: str, value: object) -> object:
        match self._kinds[name]:
            case "json" if value is not None:
                return json_text(value)
            case "double" if isinstance(value, int):
                return float(value)
            case _:
                return value


def output_format(
    out: FileFormat,
    columns: Mapping[str, ColumnKind],
    schema: Any,  # noqa: ANN401  # a pyarrow.Schema
) -> OutputFormat:
    """The writer of a format.

    Args:
        out: The format.
        columns: Of the input.
        schema: Of the input, where it is Parquet; else None.

    Raises:
        ExtraMissing: It is Parquet, and pyarrow is not installed.
    """
    match out:
        case "jsonl":
            return JsonlOutput()
        case "csv":
            return CsvOutput(list(columns))
        case "parquet":
            return ParquetOutput(columns, schema)


def reject_line(number: int, line: int | None, reason: str, row: object) -> bytes:
    """One row that was set aside, as a line of JSON.

    Args:
        number: Of the row.
        line: On which it starts, where the format has lines.
        reason: What is wrong with it.
        row: What it holds, as far as it could be read.
    """
    where = {"row": number} if line is None else {"row": number, "line": line}
    told = {**where, "reason": reason, "content": row}
    return f"{json_text(told)}\n".encode(errors="backslashreplace")
