"""The texts to learn from: files of ads, with or without anything else about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from model_export.errors import BadPairsFile
from model_export.pair_files import read_rows
from model_export.text_files import read_text

FIELDS = ("query", "title", "text", "description")
"""Columns that are read, in the order in which they are put together."""


@dataclass(frozen=True, slots=True)
class AdText:
    """One text, in two parts where the file has them apart.

    Attributes:
        first: The title, or the query that stands before an ad, or the whole text.
        second: What follows it; empty where there is nothing.
    """

    first: str
    second: str = ""


def read_texts(paths: Sequence[Path]) -> list[AdText]:
    """The texts of all files in their order, each once.

    Args:
        paths: JSONL or CSV with some of `FIELDS`, or (`.txt`) one text a line.

    Raises:
        BadPairsFile: Path, line and reason.
    """
    texts: dict[AdText, None] = {}
    for path in paths:
        own = _lines(path) if path.suffix.lower() == ".txt" else _rows(path)
        if not own:
            raise BadPairsFile(f"{path}: holds no text")
        texts.update(dict.fromkeys(own))
    return list(texts)


def _lines(path: Path) -> list[AdText]:
    lines = read_text(path).split("\n")
    return [AdText(line.strip()) for line in lines if line.strip()]


def _rows(path: Path) -> list[AdText]:
    texts = []
    for line, row in read_rows(path):
        parts = [part for name in FIELDS if (part := _part(path, line, row, name))]
        if not parts:
            raise BadPairsFile(f"{path}, line {line}: has none of {', '.join(FIELDS)}")
        texts.append(AdText(parts[0], " ".join(parts[1:])))
    return texts


def _part(path: Path, line: int, row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    if value is not None and not isinstance(value, str):
        raise BadPairsFile(f"{path}, line {line}: {name!r} must be a text, got {value!r}")
    return (value or "").strip()
