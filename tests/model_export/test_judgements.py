from __future__ import annotations

from typing import Any

import pytest

from model_export.judgements import Grade, parse_grade, parse_raters, parse_relevance


@pytest.mark.parametrize(
    ("row", "max_grade", "votes"),
    [
        ({"raters": [1, 0]}, None, (1.0, 0.0)),
        ({"label": 1, "raters": [3, 0], "grade": 3}, None, (1.0, 0.0)),
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


@pytest.mark.parametrize(
    ("row", "max_grade", "grade"),
    [
        ({"grade": 2, "max_grade": 2}, 4, Grade(2, 2)),
        ({"grade": 2}, 4, Grade(2, 4)),
        ({"label": 0, "grade": 2}, 4, Grade(2, 4)),
        ({"label": 0, "grade": 2}, None, Grade(2, 3)),
        ({"score": 0.1, "grade": 3}, None, Grade(3, 3)),
    ],
)
def test_a_grade_has_the_scale_of_the_row_of_the_file_or_the_usual_one_beside_a_label(
    row: dict[str, Any], max_grade: float | None, grade: Grade
) -> None:
    assert parse_grade(row, max_grade) == grade


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"label": 1, "grade": -1}, "'grade' must be in 0-3, the usual scale .*, got -1"),
        ({"label": 1, "grade": 4}, "'grade' must be in 0-3, the usual scale .*, got 4"),
        ({"label": 1, "grade": 5, "max_grade": 4}, "'grade' must be in 0-4, .*, got 5"),
        ({"grade": 1, "max_grade": 21}, "'max_grade' of a 'grade' must be in 1-20, got 21"),
        ({"grade": 0, "max_grade": 0.5}, "'max_grade' of a 'grade' must be in 1-20, got 0.5"),
        ({"grade": 1}, "needs 'max_grade', .* in the row or as --max-grade"),
    ],
)
def test_a_grade_that_is_not_on_its_scale_is_refused_also_beside_a_label(
    row: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_grade(row)


def test_the_best_grades_of_all_scales_have_the_gain_1_and_the_worst_0() -> None:
    assert {Grade(best, best).gain for best in (1, 2, 2.5, 20)} == {1.0}
    assert Grade(0, 3).gain == 0
    assert Grade(2, 3).gain == pytest.approx(3 / 7)
    assert Grade(2, 4).gain == pytest.approx(3 / 15)
    assert Grade(2, 4).relevance == 0.5


def test_on_another_scale_a_grade_keeps_its_gain() -> None:
    assert Grade(2, 2).value_of(3) == 3
    assert Grade(1, 3).value_of(3) == 1
    moved = Grade(Grade(1, 2).value_of(4), 4)
    assert moved.gain == pytest.approx(Grade(1, 2).gain)
