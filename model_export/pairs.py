"""Labelled (query, ad) pairs and the JSONL files they come in."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from model_export.errors import BadPairsFile
from service.domain import Ad

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_GRADE = 20  # enters gains as a power of two


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """One (query, ad) pair with what people said about it.

    Attributes:
        query: What the user typed; pairs that share it form one ranking.
        ad: The ad; its id is the file's `doc_id`, else the line number.
        label: Relevance in 0-1.
        grade: The graded judgement behind the label (0-3 in the usual scale), where known.
        rater_grades: Grades of the single raters, where known.
        source: Name of the collection that the pair comes from, "" if not said.
    """

    query: str
    ad: Ad
    label: float
    grade: float | None = None
    rater_grades: tuple[float, ...] = ()
    source: str = ""

    @property
    def gain(self) -> float:
        """What the pair adds to a ranking: its grade, or its label where there is no grade."""
        return self.label if self.grade is None else self.grade


def read_pairs(path: Path) -> list[LabelledPair]:
    """The pairs of a JSONL file, in its order; blank lines are skipped.

    Each line is an object with `query`, `label` (0-1) and either `text` or `title` (with an
    optional `description`); `grade`, `raters`, `source` and `doc_id` are optional, other keys
    are ignored.

    Raises:
        BadPairsFile: The file cannot be read, holds no pair, or a line breaks the rules; the
            message has the path, the line number and the reason.
    """
    try:
        content = path.read_text(encoding="utf-8-sig")  # some tools write a mark at the start
    except (OSError, UnicodeDecodeError) as error:
        raise BadPairsFile(f"{path}: cannot be read as UTF-8 text: {error}") from error
    pairs = []
    # Not splitlines(): JSON strings may hold U+2028 and the like unescaped.
    for line_number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            pairs.append(_parse_pair(json.loads(line), line_number))
        except json.JSONDecodeError as error:
            raise BadPairsFile(
                f"{path}, line {line_number}: not JSON, of which one object a line is expected: "
                f"{error}"
            ) from error
        except (ValueError, OverflowError, RecursionError) as error:
            raise BadPairsFile(f"{path}, line {line_number}: {error}") from error
    if not pairs:
        raise BadPairsFile(f"{path}: holds no pairs; expected one JSON object a line")
    return pairs


def _parse_pair(row: object, line_number: int) -> LabelledPair:
    if not isinstance(row, dict):
        raise ValueError(f"expected a JSON object, got {type(row).__name__}")
    query = _text(row, "query")
    if not query:
        raise ValueError("'query' is missing or empty")
    ad = Ad(
        id=str(row.get("doc_id") or line_number),
        title=_text(row, "title"),
        description=_text(row, "description"),
        text=_text(row, "text"),
    )
    if not (ad.text or ad.title):
        raise ValueError("the ad has neither 'title' nor 'text'")
    if "label" not in row:
        raise ValueError("'label' is missing")
    label = _number(row["label"], "label")
    if not 0 <= label <= 1:
        raise ValueError(f"'label' must be in 0-1, got {label:g}")
    grade = row.get("grade")
    raters = row.get("raters") or []
    if not isinstance(raters, list):
        raise ValueError("'raters' must be a list of grades")
    return LabelledPair(
        query=query,
        ad=ad,
        label=label,
        grade=None if grade is None else _grade(grade),
        rater_grades=tuple(_number(value, "raters") for value in raters),
        source=_text(row, "source"),
    )


def _grade(value: object) -> float:
    grade = _number(value, "grade")
    if abs(grade) > LARGEST_GRADE:
        raise ValueError(f"'grade' must be at most {LARGEST_GRADE}, got {grade:g}")
    return grade


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValueError(f"'{key}' must be a string, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair: no text has it
        raise ValueError(f"'{key}' is not Unicode text: {error.reason}") from error
    return value.strip()


def _number(value: object, key: str) -> float:
    # bool is an int to Python, and `true` is a fair way to write label 1.
    if not isinstance(value, int | float):
        raise ValueError(f"'{key}' must be a number, got {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"'{key}' must be a finite number, got {number:g}")
    return number
