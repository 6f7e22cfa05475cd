"""Labelled (query, ad) pairs, and what the fields of their files mean."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from model_export.errors import BadPairsFile
from model_export.pair_files import PairsFormat, Row, read_rows
from model_export.pair_notes import contradictions, ignored_columns
from service.domain import Ad

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LARGEST_GRADE = 20  # enters gains as a power of two
USUAL_MAX_GRADE = 3.0
"""Best grade of raters beside a `grade` that comes with a label and without its maximum."""


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """One (query, ad) pair with what people said about it.

    Attributes:
        query: What the user typed; pairs that share it form one ranking.
        ad: The ad; its id is the file's `doc_id`, else the line number.
        label: Relevance in 0-1.
        grade: The graded judgement behind the label (0-3 in the usual scale), where known.
        rater_votes: What the single raters said, where known, in 0-1: a grade is divided by the
            best one possible.
        source: Name of the collection that the pair comes from, "" if not said.
    """

    query: str
    ad: Ad
    label: float
    grade: float | None = None
    rater_votes: tuple[float, ...] = ()
    source: str = ""

    @property
    def gain(self) -> float:
        """What the pair adds to a ranking: its grade, or its label where there is no grade."""
        return self.label if self.grade is None else self.grade


def read_pairs(
    path: Path,
    file_format: PairsFormat | None = None,
    max_grade: float | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> list[LabelledPair]:
    """The pairs of a JSONL or CSV file, in its order; blank lines are skipped.

    A row has `query`, either `text` or `title` (with an optional `description`), and what people
    said: `label` or `score` (0-1) or `grade` with the best grade possible, `max_grade`. The first
    of these three that it has is the pair's relevance, in training as in evaluation; a grade is
    also its gain in a ranking. `raters`, `source` and `doc_id` are optional, other keys are
    ignored. `raters` are grades of 0 to `max_grade`; where the row has a `grade` and no maximum,
    of 0-3; where it has neither, votes of 0-1.

    Args:
        path: The file.
        file_format: None goes by its name: `.csv` is CSV, all else JSON Lines.
        max_grade: The best grade, for rows that do not say it themselves.
        tell: Told a sentence on columns that nothing reads, and one on rows that contradict each
            other.

    Raises:
        BadPairsFile: The file cannot be read, holds no pair, or a row breaks the rules; the
            message has the path, the line number and the reason.
    """
    pairs, lines = [], []
    columns: set[str] = set()
    for line_number, row in read_rows(path, file_format):
        try:
            pairs.append(_parse_pair(row, line_number, max_grade))
            lines.append(line_number)
            columns |= row.keys()
        except (ValueError, OverflowError) as error:
            raise BadPairsFile(f"{path}, line {line_number}: {error}") from error
    if not pairs:
        raise BadPairsFile(f"{path}: holds no pairs; expected a JSON object or a CSV row for each")
    if ignored := ignored_columns(columns):
        tell(f"note: {path}: {ignored}")
    if contradicted := contradictions(pairs, lines):
        tell(f"warning: {path}: {contradicted}")
    return pairs


def parse_query(row: Row) -> str:
    """The query of a row.

    Raises:
        ValueError: It is missing or not text.
    """
    query = _text(row, "query")
    if not query:
        raise ValueError("'query' is missing or empty")
    return query


def parse_ad(row: Row, line_number: int) -> Ad:
    """The ad of a row; its id is `doc_id`, else the line number.

    Raises:
        ValueError: It has neither a title nor a text, or they are not text.
    """
    ad = Ad(
        id=str(row.get("doc_id") or line_number),
        title=_text(row, "title"),
        description=_text(row, "description"),
        text=_text(row, "text"),
    )
    if not (ad.text or ad.title):
        raise ValueError("the ad has neither 'title' nor 'text'")
    return ad


def parse_relevance(row: Row, max_grade: float | None = None) -> float | None:
    """The relevance of a row in 0-1, see `read_pairs`; None where nobody judged it.

    Raises:
        ValueError: It is no number, out of range, or a grade without its maximum.
    """
    for key in ("label", "score"):
        if row.get(key) is not None:
            value = _number(row[key], key)
            if not 0 <= value <= 1:
                raise ValueError(f"'{key}' must be in 0-1, got {value:g}")
            return value
    if row.get("grade") is None:
        return None
    best = _max_grade(row, max_grade)
    if best is None:
        raise ValueError(
            "'grade' without 'label' or 'score' needs 'max_grade', the best grade possible"
        )
    grade = _grade(row["grade"])
    if not 0 <= grade <= best or best == 0:
        raise ValueError(f"'grade' must be in 0-{best:g}, its 'max_grade', got {grade:g}")
    return grade / best


def _parse_pair(row: Row, line_number: int, max_grade: float | None) -> LabelledPair:
    query, ad = parse_query(row), parse_ad(row, line_number)
    label = parse_relevance(row, max_grade)
    if label is None:
        raise ValueError("'label' is missing, and so are 'score' and 'grade'")
    grade = row.get("grade")
    return LabelledPair(
        query=query,
        ad=ad,
        label=label,
        grade=None if grade is None else _grade(grade),
        rater_votes=_rater_votes(row, max_grade),
        source=_text(row, "source"),
    )


def _rater_votes(row: Row, max_grade: float | None) -> tuple[float, ...]:
    raters = row.get("raters") or []
    if not isinstance(raters, list):
        raise ValueError("'raters' must be a list of grades or votes")
    if not raters:
        return ()
    best, scale = _rater_scale(row, max_grade)
    votes = [_number(value, "raters") for value in raters]
    wrong = next((vote for vote in votes if not 0 <= vote <= best), None)
    if wrong is not None:
        raise ValueError(f"'raters' must be in 0-{best:g}, {scale}, got {wrong:g}")
    return tuple(vote / best for vote in votes)


def _rater_scale(row: Row, max_grade: float | None) -> tuple[float, str]:
    """The best that a rater of the row can give, and where that is from."""
    best = _max_grade(row, max_grade)
    if best is not None:
        if best <= 0:
            raise ValueError(f"'max_grade' must be above 0, got {best:g}")
        return best, "its 'max_grade'"
    if row.get("grade") is not None:
        return USUAL_MAX_GRADE, "the usual scale of a 'grade' without its 'max_grade'"
    return 1.0, "as votes; for grades say 'max_grade', the best one possible"


def _max_grade(row: Row, max_grade: float | None) -> float | None:
    return max_grade if row.get("max_grade") is None else _number(row["max_grade"], "max_grade")


def _grade(value: object) -> float:
    grade = _number(value, "grade")
    if abs(grade) > LARGEST_GRADE:
        raise ValueError(f"'grade' must be at most {LARGEST_GRADE}, got {grade:g}")
    return grade


def _text(row: Row, key: str) -> str:
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
