from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.scoring.calibration import Head, ScoreCalibration, sigmoid, to_scores

ONE = Head(kind="binary", n_logits=1)
IDENTITY = ScoreCalibration()


def scores(
    rows: list[list[float]], head: Head, calibration: ScoreCalibration = IDENTITY
) -> list[float]:
    return [float(x) for x in to_scores(np.array(rows, dtype=np.float32), head, calibration)]


def test_one_logit_goes_through_the_sigmoid() -> None:
    assert scores([[0.0], [np.log(3)], [-np.log(3)]], ONE) == pytest.approx([0.5, 0.75, 0.25])


def test_extreme_logits_neither_overflow_nor_tie() -> None:
    low, lower = scores([[-100.0], [-101.0]], ONE)
    high, higher = scores([[30.0], [31.0]], ONE)
    assert 0 < lower < low < 1e-40
    assert 1 - 1e-12 < high < higher < 1


@given(st.floats(-700, 700))
def test_the_sigmoid_is_symmetric(value: float) -> None:
    total = sigmoid(np.array([value])) + sigmoid(np.array([-value]))
    assert total == pytest.approx(1.0, abs=1e-15)


def test_two_logits_are_the_softmax_of_the_relevant_one() -> None:
    rows = [[1.0, 3.0], [100.0, -100.0], [-100.0, 50.0]]
    relevant_second = Head(kind="binary", n_logits=2, relevant_index=1)
    relevant_first = Head(kind="binary", n_logits=2, relevant_index=0)
    expected = [np.exp(3) / (np.exp(1) + np.exp(3)), 0.0, 1.0]
    assert scores(rows, relevant_second) == pytest.approx(expected)
    assert scores(rows, relevant_first) == pytest.approx([1 - x for x in expected])


def test_ordered_grades_give_the_expected_grade_scaled_to_one() -> None:
    head = Head(kind="ordinal", n_logits=4)
    logits = np.log([[0.1, 0.2, 0.3, 0.4]]).tolist()
    expected_grade = (0.2 * 1 + 0.3 * 2 + 0.4 * 3) / 3
    assert scores(logits, head) == pytest.approx([expected_grade])


def test_certain_grades_stay_finite_and_in_range() -> None:
    head = Head(kind="ordinal", n_logits=3)
    worst, best = scores([[900.0, 0.0, -900.0], [-900.0, 0.0, 900.0]], head)
    assert worst == pytest.approx(0.0)
    assert best == pytest.approx(1.0)


def test_calibration_moves_scores_and_keeps_their_order() -> None:
    rows = [[-2.0], [-1.0], [0.5], [4.0]]
    calibrated = scores(rows, ONE, ScoreCalibration(slope=0.5, intercept=-1.0))
    assert calibrated == sorted(calibrated)
    assert calibrated[0] == pytest.approx(1 / (1 + np.exp(2.0)))


def test_a_slope_that_would_turn_the_ranking_over_is_refused() -> None:
    with pytest.raises(ValidationError, match="slope"):
        ScoreCalibration(slope=-1.0)


def test_a_logit_that_is_not_finite_never_becomes_a_score() -> None:
    assert np.isnan(scores([[float("nan")]], ONE)[0])
