"""A table of pairs as every format gives it: rows, in parts that are the same each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

from service.bulk.errors import WrongArguments

Row = Mapping[str, Any]

FileFormat = Literal["jsonl", "csv", "parquet"]

TEXT_COLUMNS = ("query", "title", "description", "text")
"""What a pair is made of; all other columns are carried through."""

SCORE_COLUMNS = ("score", "model_version", "truncated")
"""What scoring adds. Columns of these names in the input are left out: a file is scored anew."""

ColumnKind = Literal["string", "int64", "double", "bool", "json"]
"""What the values of a column are, as far as it matters for writing them; `json`: of any kind."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row of the input.

    Attributes:
        number: Of the row, the first being 1; blank lines and headers are no rows.
        line: On which it starts, the first being 1; None where a format has no lines.
        fields: None where it could not be read. Of Parquet, only `TEXT_COLUMNS`.
        fault: Why it could not be read.
        raw: The beginning of what could not be read.
    """

    number: int
    line: int | None
    fields: Row | None
    fault: str = ""
    raw: str = ""


@dataclass(frozen=True, slots=True)
class PartSpec:
    """Where one part of the input is.

    Attributes:
        number: Of the part, the first being 0.
        first_row: Number of its first row.
        n_rows: Rows in it.
        start: Where to begin reading: a byte of a text, a row group of Parquet.
        first_line: The line that begins there; 0 where a format has no lines.
    """

    number: int
    first_row: int
    n_rows: int
    start: int
    first_line: int


@dataclass(frozen=True, slots=True)
class PartSize:
    """The most that a part holds, whichever is reached first. Decides memory and lost work."""

    rows: int = 10_000
    text_bytes: int = 33_554_432


@dataclass(frozen=True, slots=True)
class FileStamp:
    """Changes when a file is written to: its size, and when that was last done."""

    n_bytes: int
    modified_ns: int


@dataclass(frozen=True, slots=True)
class Survey:
    """What one look through the whole input tells.

    Attributes:
        sha256: Of all its bytes.
        stamp: Of the file, taken before the first byte was read.
        columns: Names in order of appearance, with their kinds. Empty where the form of the output
            does not ask for them.
        parts: All of it, in order.
    """

    sha256: str
    stamp: FileStamp
    columns: Mapping[str, ColumnKind]
    parts: Sequence[PartSpec]

    @property
    def n_rows(self) -> int:
        """Rows in all parts."""
        return sum(part.n_rows for part in self.parts)


class Block(Protocol):
    """The rows of one part."""

    @property
    def rows(self) -> Sequence[InputRow]:
        """All of them, in order."""

    def carried(self, indices: Sequence[int]) -> list[Row]:
        """All columns of some rows that could be read."""


class PairTable(Protocol):
    """An input file."""

    @property
    def path(self) -> Path:
        """Of the file."""

    def survey(self, size: PartSize, *, with_columns: bool) -> Survey:
        """Look through all of it.

        Raises:
            InputUnusable: It cannot be read, or has not the columns that pairs need.
        """

    def read(self, part: PartSpec) -> Block:
        """The rows of a part; parts in order are quickest."""


def format_of(path: Path) -> FileFormat:
    """By the suffix of its name.

    Raises:
        WrongArguments: It names no format.
    """
    suffix = path.suffix.lower().removeprefix(".")
    for known in get_args(FileFormat):
        if suffix == known:
            found: FileFormat = known
            return found
    raise WrongArguments(f"{path}: the name must end in .jsonl, .csv or .parquet")


def stamp_of(path: Path) -> FileStamp:
    """The file's stamp now."""
    status = path.stat()
    return FileStamp(status.st_size, status.st_mtime_ns)


def carried_names(names: Sequence[str]) -> list[str]:
    """The input's columns that stand in the output."""
    return [name for name in names if name not in SCORE_COLUMNS]


def require_pair_columns(names: Sequence[str]) -> None:
    """Refuse a table in which no row can be a pair.

    Raises:
        ValueError: It has no column for the query, or none for the ad.
    """
    if "query" not in names or not {"title", "text"} & set(names):
        raise ValueError(
            f"must have the columns 'query' and 'title' or 'text' (of {', '.join(TEXT_COLUMNS)}), "
            f"has {list(names)}"
        )
