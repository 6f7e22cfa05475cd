from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from pydantic import ValidationError

from service.scoring.calibration import (
    TAIL_FROM,
    Beta,
    Identity,
    Isotonic,
    LinearSpline,
    Platt,
    ScoreCalibration,
    Temperature,
    parse_score_calibration,
    sigmoid,
    to_scores,
)
from service.scoring.head import Head

ONE = Head(kind="binary", n_logits=1)
MAPS: list[ScoreCalibration] = [
    Identity(),
    Temperature(temperature=2.0, fitted_on="dev"),
    Platt(slope=0.5, intercept=-1.0, fitted_on="dev"),
    Beta(a=0.5, b=2.0, c=-0.25, fitted_on="dev"),
    LinearSpline(
        knot_margins=(-1.0, 1.0),
        knot_log_odds=(-2.0, 1.0),
        slope_below=2.0,
        slope_above=0.5,
        fitted_on="dev",
    ),
    Isotonic(
        knot_margins=(-2.0, 0.0, 1.0),
        knot_log_odds=(-3.0, -1.0, 4.0),
        slope_below=0.5,
        slope_above=0.25,
        fitted_on="dev",
    ),
]
every_map = pytest.mark.parametrize("calibration", MAPS, ids=lambda c: c.method)


def scores(
    rows: list[list[float]], head: Head = ONE, calibration: ScoreCalibration = MAPS[0]
) -> list[float]:
    return [float(x) for x in to_scores(np.array(rows, dtype=np.float32), head, calibration)]


def plain_sigmoid(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """As the sigmoid was before it had tails."""
    exp_negative = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, exp_negative) / (1.0 + exp_negative)


def test_one_logit_goes_through_the_sigmoid() -> None:
    assert scores([[0.0], [np.log(3)], [-np.log(3)]]) == pytest.approx([0.5, 0.75, 0.25])


@given(st.lists(st.floats(-TAIL_FROM, TAIL_FROM), min_size=1, max_size=50))
def test_within_its_tails_the_sigmoid_is_the_plain_one_to_the_last_bit(values: list[float]) -> None:
    x = np.array([*values, TAIL_FROM, -TAIL_FROM])
    assert sigmoid(x).tolist() == plain_sigmoid(x).tolist()
    beside_an_extreme = sigmoid(np.append(x, 1e4))[:-1]
    assert beside_an_extreme.tolist() == plain_sigmoid(x).tolist()


def test_the_tails_join_the_sigmoid_in_value_and_slope() -> None:
    step = 1e-4
    for end in (-TAIL_FROM, TAIL_FROM):
        before, at, after = sigmoid(np.array([end - step, end, end + step])).tolist()
        assert (after - at) / (at - before) == pytest.approx(1.0, abs=2 * step + 1e-3)
    low = sigmoid(np.array([-TAIL_FROM - 5]))[0]
    end = 1 / (1 + math.exp(TAIL_FROM))
    assert low == pytest.approx(end / (1 + (1 - end) * 5), rel=1e-12)


def test_extreme_logits_neither_overflow_nor_tie() -> None:
    sizes = [20.0, 21.0, 40.0, 100.0, 101.0, 1e4]
    rows = [[-size] for size in reversed(sizes)] + [[size] for size in sizes]
    found = scores(rows)
    assert (np.diff(found) > 0).all()
    assert 0 < found[0] < 1e-12
    assert 1 - 1e-12 < found[-1] < 1
    assert found[0] == pytest.approx(1 - found[-1], abs=1e-15)


def test_the_largest_logits_that_a_graph_can_give_stay_in_range() -> None:
    largest = float(np.finfo(np.float32).max)
    for calibration in MAPS:
        low, high = scores([[-largest], [largest]], ONE, calibration)
        assert 0 <= low < 1e-30
        assert 1 - 1e-15 < high <= 1


@every_map
@given(logits=st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=40))
def test_scores_never_fall_while_logits_rise(
    calibration: ScoreCalibration, logits: list[float]
) -> None:
    found = scores([[value] for value in sorted(logits)], ONE, calibration)
    assert min(found) >= 0
    assert max(found) <= 1
    assert found == sorted(found)


@every_map
@given(start=st.floats(0.001, 0.9))
def test_logits_that_are_well_apart_never_tie(calibration: ScoreCalibration, start: float) -> None:
    sizes = [start * 1.1**power for power in range(200) if start * 1.1**power <= 1e4]
    rows = [[-size] for size in reversed(sizes)] + [[size] for size in sizes]
    assert (np.diff(scores(rows, ONE, calibration)) > 0).all()


@every_map
def test_neighbouring_float32_logits_of_usual_size_never_tie(
    calibration: ScoreCalibration,
) -> None:
    for start in (-8.0, -0.5, 0.25, 3.0, 9.0):
        logit, rows = np.float32(start), []
        for _ in range(50):
            rows.append([float(logit)])
            logit = np.nextafter(logit, np.float32(np.inf))
        assert (np.diff(scores(rows, ONE, calibration)) > 0).all()


@every_map
def test_a_logit_that_is_not_finite_never_becomes_a_score(calibration: ScoreCalibration) -> None:
    rows = [[float("nan")], [float("inf")], [float("-inf")], [0.5]]
    found = scores(rows, ONE, calibration)
    assert np.isnan(found[:3]).all()
    assert 0 < found[3] < 1


def test_the_sigmoid_hands_nan_through() -> None:
    assert np.isnan(sigmoid(np.array([np.nan, 1e4]))).tolist() == [True, False]


@given(st.floats(-1e5, 1e5))
def test_the_sigmoid_is_symmetric(value: float) -> None:
    total = sigmoid(np.array([value])) + sigmoid(np.array([-value]))
    assert total == pytest.approx(1.0, abs=1e-15)


def test_two_logits_are_the_softmax_of_the_relevant_one() -> None:
    rows = [[1.0, 3.0], [100.0, -100.0], [-100.0, 50.0]]
    relevant_second = Head(kind="binary", n_logits=2, relevant_index=1)
    relevant_first = Head(kind="binary", n_logits=2, relevant_index=0)
    expected = [np.exp(3) / (np.exp(1) + np.exp(3)), 0.0, 1.0]
    assert scores(rows, relevant_second) == pytest.approx(expected, abs=1e-9)
    assert scores(rows, relevant_first) == pytest.approx([1 - x for x in expected], abs=1e-9)


def test_ordered_grades_give_the_expected_grade_scaled_to_one() -> None:
    head = Head(kind="ordinal", n_logits=4)
    logits = np.log([[0.1, 0.2, 0.3, 0.4]]).tolist()
    expected_grade = (0.2 * 1 + 0.3 * 2 + 0.4 * 3) / 3
    assert scores(logits, head) == pytest.approx([expected_grade])


def test_a_class_among_many_gives_its_share_of_the_softmax() -> None:
    head = Head(kind="multiclass", n_logits=3, relevant_index=1)
    assert scores(np.log([[0.2, 0.7, 0.1]]).tolist(), head) == pytest.approx([0.7])


def test_each_map_does_what_its_formula_says() -> None:
    margins = np.array([-30.0, -2.0, -1.0, 0.0, 0.5, 2.0, 30.0])
    _, temperature, platt, beta, spline, isotonic = MAPS
    assert MAPS[0].to_log_odds(margins).tolist() == margins.tolist()
    np.testing.assert_allclose(temperature.to_log_odds(margins), margins / 2)
    np.testing.assert_allclose(platt.to_log_odds(margins), margins / 2 - 1)
    p = 1 / (1 + np.exp(-margins))
    expected = 0.5 * np.log(p) - 2 * np.log1p(-p) - 0.25
    np.testing.assert_allclose(beta.to_log_odds(margins), expected, rtol=1e-3)
    np.testing.assert_allclose(
        spline.to_log_odds(margins), [-60.0, -4.0, -2.0, -0.5, 0.25, 1.5, 15.5]
    )
    np.testing.assert_allclose(
        isotonic.to_log_odds(margins), [-17.0, -3.0, -2.0, -1.0, 1.5, 4.25, 11.25]
    )


def test_beta_keeps_a_slope_where_probabilities_have_run_out_of_digits() -> None:
    beta = Beta(a=0.5, b=2.0, c=0.0, fitted_on="dev")
    low, lower = beta.to_log_odds(np.array([-9000.0, -9001.0]))
    high, higher = beta.to_log_odds(np.array([9000.0, 9001.0]))
    assert low - lower == pytest.approx(0.5)
    assert higher - high == pytest.approx(2.0)


def test_a_single_knot_is_a_bend_between_two_slopes() -> None:
    bend = Isotonic(
        knot_margins=(1.0,), knot_log_odds=(2.0,), slope_below=0.5, slope_above=3.0, fitted_on="x"
    )
    assert bend.to_log_odds(np.array([-1.0, 1.0, 2.0])).tolist() == [1.0, 2.0, 5.0]


@every_map
def test_a_map_comes_back_from_json_as_it_went(calibration: ScoreCalibration) -> None:
    assert parse_score_calibration(calibration.model_dump(mode="json")) == calibration


FITTED = {"fitted_on": "dev"}
KNOTS = {"method": "isotonic", "slope_below": 0.1, "slope_above": 0.1, **FITTED}


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"slope": 1.0, "intercept": 0.0, **FITTED}, "method"),
        ({"method": "spline", **FITTED}, "spline"),
        ({"method": "temperature", "temperature": -1.0, **FITTED}, "temperature"),
        ({"method": "temperature", "temperature": 1e300, **FITTED}, "temperature"),
        ({"method": "platt", "slope": -1.0, "intercept": 0.0, **FITTED}, "slope"),
        ({"method": "platt", "slope": 0.0, "intercept": 0.0, **FITTED}, "slope"),
        ({"method": "platt", "slope": 1e-300, "intercept": 0.0, **FITTED}, "slope"),
        ({"method": "platt", "slope": math.nan, "intercept": 0.0, **FITTED}, "slope"),
        ({"method": "platt", "slope": 1.0, "intercept": math.inf, **FITTED}, "intercept"),
        ({"method": "platt", "slope": 1.0, "intercept": 1e300, **FITTED}, "intercept"),
        ({"method": "platt", "slope": 1.0, "intercept": 0.0}, "fitted_on"),
        ({"method": "platt", "slope": 1.0, "intercept": 0.0, "a": 1.0, **FITTED}, "a"),
        ({"method": "beta", "a": 0.0, "b": 1.0, "c": 0.0, **FITTED}, "a"),
        ({"method": "beta", "a": 1.0, "b": -1.0, "c": 0.0, **FITTED}, "b"),
        ({"method": "beta", "a": 1.0, "b": 1.0, "c": math.nan, **FITTED}, "c"),
        ({"knot_margins": [], "knot_log_odds": [], **KNOTS}, "knot_margins"),
        ({"knot_margins": [0, 1], "knot_log_odds": [0], **KNOTS}, "2 knot_margins for 1"),
        ({"knot_margins": [1, 1], "knot_log_odds": [0, 1], **KNOTS}, "strictly increasing"),
        ({"knot_margins": [0, 1], "knot_log_odds": [1, 1], **KNOTS}, "must rise"),
        ({"knot_margins": [0, 1], "knot_log_odds": [1, 0], **KNOTS}, "must rise"),
        ({"knot_margins": [0, 1], "knot_log_odds": [1, 1 + 1e-12], **KNOTS}, "must rise"),
        ({"knot_margins": [0, math.nan], "knot_log_odds": [0, 1], **KNOTS}, "knot_margins"),
        ({"knot_margins": [0], "knot_log_odds": [0], **KNOTS, "slope_below": 0.0}, "slope_below"),
        ({"knot_margins": [0], "knot_log_odds": [0], **KNOTS, "slope_above": -1}, "slope_above"),
    ],
)
def test_a_map_that_would_tie_or_turn_the_ranking_over_is_refused(
    fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValidationError, match=says):
        parse_score_calibration(fields)
