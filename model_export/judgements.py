"""What people said of a (query, ad) row, from the fields of its file to numbers in 0-1."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model_export.pair_files import Row

LARGEST_GRADE = 20  # enters gains as a power of two
USUAL_MAX_GRADE = 3.0
"""Best grade of raters beside a `grade` that comes with a label and without its maximum."""


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
    grade = parse_grade(row)
    if grade is None:
        return None
    best = _max_grade(row, max_grade)
    if best is None:
        raise ValueError(
            "'grade' without 'label' or 'score' needs 'max_grade', the best grade possible"
        )
    if not 0 <= grade <= best or best == 0:
        raise ValueError(f"'grade' must be in 0-{best:g}, its 'max_grade', got {grade:g}")
    return grade / best


def parse_grade(row: Row) -> float | None:
    """The graded judgement of a row, which is also its gain in a ranking; None without one.

    Raises:
        ValueError: It is no number, or beyond `LARGEST_GRADE`.
    """
    if row.get("grade") is None:
        return None
    grade = _number(row["grade"], "grade")
    if abs(grade) > LARGEST_GRADE:
        raise ValueError(f"'grade' must be at most {LARGEST_GRADE}, got {grade:g}")
    return grade


def parse_raters(row: Row, max_grade: float | None = None) -> tuple[float, ...]:
    """What single raters said of a row, each in 0-1: a grade is divided by the best one possible.

    The best one is `max_grade`, the row's own or else the given one; where there is neither, 3
    beside a `grade`, else 1.

    Raises:
        ValueError: They are no list of numbers, or one is out of range.
    """
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


def _number(value: object, key: str) -> float:
    # bool is an int to Python, and `true` is a fair way to write label 1.
    if not isinstance(value, int | float):
        raise ValueError(f"'{key}' must be a number, got {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"'{key}' must be a finite number, got {number:g}")
    return number
