from __future__ import annotations

from typing import Any

import pytest

from model_export.judgements import parse_grade, parse_raters, parse_relevance


@pytest.mark.parametrize(
    ("row", "max_grade", "votes"),
    [
        ({"raters": [1, 0]}, None, (1.0, 0.0)),
        ({"raters": [3, 0], "grade": 3}, None, (1.0, 0.0)),
        ({"raters": [2, 0], "grade": 3}, 4, (0.5, 0.0)),
        ({"raters": [2, 0], "max_grade": 2}, 4, (1.0, 0.0)),
        ({"raters": [], "max_grade": 0}, None, ()),
        ({"raters": None}, None, ()),
    ],
)
def test_raters_are_divided_by_the_best_of_the_row_of_the_file_or_of_what_is_usual(
    row: dict[str, Any], max_grade: float | None, votes: tuple[float, ...]
) -> None:
    assert parse_raters(row, max_grade) == votes


def test_a_row_that_nobody_judged_has_neither_relevance_nor_grade() -> None:
    row = {"label": None, "grade": None}
    assert parse_relevance(row) is None
    assert parse_grade(row) is None


def test_a_grade_is_itself_whatever_the_label() -> None:
    assert parse_grade({"label": 1, "grade": 2}) == 2.0
    with pytest.raises(ValueError, match="'grade' must be at most 20, got -21"):
        parse_grade({"grade": -21})
