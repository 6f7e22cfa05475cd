"""What people said of a (query, ad) row, from the fields of its file to numbers with a scale."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from model_export.pair_files import Row

LARGEST_MAX_GRADE = 20  # enters gains as a power of two
USUAL_MAX_GRADE = 3.0
"""Best grade of a `grade`, and of its raters, beside a label and without a maximum."""


@dataclass(frozen=True, slots=True)
class Grade:
    """A graded judgement, with the scale that it is on.

    Attributes:
        value: From 0, the worst, to `best`.
        best: The best grade possible, 1 to `LARGEST_MAX_GRADE`.
    """

    value: float
    best: float

    @property
    def relevance(self) -> float:
        """The grade's part of the best one, in 0-1."""
        return self.value / self.best

    @property
    def gain(self) -> float:
        """What it adds to a ranking, in 0-1: (2**value - 1) / (2**best - 1).

        Source: Burges et al. 2005 (2**grade - 1); divided by the best one's, so that the best
        grades of two scales are worth the same.
        """
        return (2**self.value - 1) / (2**self.best - 1)

    def value_of(self, best: float) -> float:
        """The grade on the scale of 0 to `best` that has the same gain."""
        if best == self.best:  # exactly
            return self.value
        return math.log2(1 + self.gain * (2**best - 1))


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
    grade = parse_grade(row, max_grade)
    return None if grade is None else grade.relevance


def parse_grade(row: Row, max_grade: float | None = None) -> Grade | None:
    """The graded judgement of a row; None without one.

    Its best one is `max_grade`, the row's own or else the given one; beside a label or a score it
    is 3 where there is neither.

    Raises:
        ValueError: It is no number, beyond its scale, or its scale is not known or too large.
    """
    if row.get("grade") is None:
        return None
    value = _number(row["grade"], "grade")
    best, scale = _scale(row, max_grade)
    if not 1 <= best <= LARGEST_MAX_GRADE:
        raise ValueError(
            f"'max_grade' of a 'grade' must be in 1-{LARGEST_MAX_GRADE}, got {best:g}; finer or "
            "wider scales are a 'score' in 0-1"
        )
    if not 0 <= value <= best:
        raise ValueError(f"'grade' must be in 0-{best:g}, {scale}, got {value:g}")
    return Grade(value, best)


def parse_raters(row: Row, max_grade: float | None = None) -> tuple[float, ...]:
    """What single raters said of a row, each in 0-1: a grade is divided by the best one possible.

    The best one is that of `parse_grade`; without a `grade` and a `max_grade` it is 1.

    Raises:
        ValueError: They are no list of numbers, or one is out of range.
    """
    raters = row.get("raters") or []
    if not isinstance(raters, list):
        raise ValueError("'raters' must be a list of grades or votes")
    if not raters:
        return ()
    best, scale = _scale(row, max_grade)
    votes = [_number(value, "raters") for value in raters]
    wrong = next((vote for vote in votes if not 0 <= vote <= best), None)
    if wrong is not None:
        raise ValueError(f"'raters' must be in 0-{best:g}, {scale}, got {wrong:g}")
    return tuple(vote / best for vote in votes)


def _scale(row: Row, max_grade: float | None) -> tuple[float, str]:
    """The best grade or vote that the row can have, and where that is from."""
    best = max_grade if row.get("max_grade") is None else _number(row["max_grade"], "max_grade")
    if best is not None:
        if best <= 0:
            raise ValueError(f"'max_grade' must be above 0, got {best:g}")
        return best, "'max_grade' being the best"
    if row.get("grade") is None:
        return 1.0, "as votes; for grades say 'max_grade', the best one possible"
    if row.get("label") is None and row.get("score") is None:
        raise ValueError(
            "'grade' without 'label' or 'score' needs 'max_grade', the best grade possible, in the "
            "row or as --max-grade"
        )
    return USUAL_MAX_GRADE, "the usual scale of a 'grade' without its 'max_grade'"


def _number(value: object, key: str) -> float:
    # bool is an int to Python, and `true` is a fair way to write label 1.
    if not isinstance(value, int | float):
        raise ValueError(f"'{key}' must be a number, got {type(value).__name__}")
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"'{key}' must be a finite number, got {number:g}")
    return number
