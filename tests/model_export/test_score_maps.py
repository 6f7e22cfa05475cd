from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model_export.score_maps import (
    FITS,
    Fit,
    fit_beta,
    fit_isotonic,
    fit_linear_spline,
    fit_platt,
    fit_temperature,
)
from service.scoring.calibration import (
    Beta,
    LinearSpline,
    Platt,
    ScoreCalibration,
    Temperature,
    sigmoid,
)

every_fit = pytest.mark.parametrize("fit", FITS, ids=lambda fit: fit.__name__)


def simulated(
    truth: ScoreCalibration, n_pairs: int = 20000
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(1)
    margins = rng.normal(0, 2, n_pairs)
    drawn = rng.random(n_pairs) < sigmoid(truth.to_log_odds(margins))
    return margins, drawn.astype(np.float64)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
def test_the_temperature_that_made_the_labels_is_found(temperature: float) -> None:
    margins, labels = simulated(Temperature(temperature=temperature, fitted_on="truth"))
    found = fit_temperature(margins, labels, "simulation")
    assert found.temperature == pytest.approx(temperature, rel=0.06)
    assert found.fitted_on == "simulation"


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, -1.0), (3.0, 2.0)])
def test_the_slope_and_intercept_that_made_the_labels_are_found(
    slope: float, intercept: float
) -> None:
    margins, labels = simulated(Platt(slope=slope, intercept=intercept, fitted_on="truth"))
    found = fit_platt(margins, labels, "simulation")
    assert found.slope == pytest.approx(slope, rel=0.1)
    assert found.intercept == pytest.approx(intercept, abs=0.1)


@pytest.mark.parametrize("scale", [1e-2, 100.0])
def test_the_scale_of_the_logits_does_not_matter(scale: float) -> None:
    margins, labels = simulated(Platt(slope=1.0, intercept=0.5, fitted_on="truth"))
    found = fit_platt(margins * scale, labels, "simulation")
    assert found.slope * scale == pytest.approx(1.0, rel=0.1)
    assert found.intercept == pytest.approx(0.5, abs=0.1)


def test_the_two_slopes_of_a_beta_map_are_found() -> None:
    margins, labels = simulated(Beta(a=0.3, b=1.5, c=-0.5, fitted_on="truth"))
    found = fit_beta(margins, labels, "simulation")
    assert (found.a, found.b, found.c) == pytest.approx((0.3, 1.5, -0.5), abs=0.15)


def test_a_side_where_relevance_falls_keeps_a_small_slope() -> None:
    rng = np.random.default_rng(2)
    margins = rng.normal(0, 2, 4000)
    labels = (rng.random(4000) < sigmoid(np.abs(margins) - 1)).astype(np.float64)
    found = fit_beta(margins, labels, "U-shaped")
    assert 0 < found.a < 0.02
    assert found.b > 0.3


def test_the_slopes_of_a_linear_spline_are_found() -> None:
    truth = LinearSpline(
        knot_margins=(-0.86, 0.86),  # the thirds of what `simulated` draws
        knot_log_odds=(-0.5, 0.1),
        slope_below=1.5,
        slope_above=2.0,
        fitted_on="truth",
    )
    found = fit_linear_spline(*simulated(truth), "simulation")
    assert found.knot_margins == pytest.approx(truth.knot_margins, abs=0.05)
    assert found.knot_log_odds == pytest.approx(truth.knot_log_odds, abs=0.1)
    assert (found.slope_below, found.slope_above) == pytest.approx((1.5, 2.0), rel=0.1)


def test_a_stretch_where_relevance_falls_keeps_a_small_slope() -> None:
    rng = np.random.default_rng(2)
    margins = rng.normal(0, 2, 6000)
    bumpy = np.select([margins < -0.86, margins < 0.86], [margins, -2 * margins], margins)
    labels = (rng.random(6000) < sigmoid(bumpy)).astype(np.float64)
    low, high = fit_linear_spline(margins, labels, "falls in the middle").knot_log_odds
    assert 0 < high - low < 0.02


@every_fit
def test_margins_that_are_nearly_one_number_give_a_valid_map(fit: Fit) -> None:
    rising = fit(np.array([0.0, 1e-38]), np.zeros(2), "two")
    assert (np.diff(rising.to_log_odds(np.array([-1.0, 0.0, 1.0]))) > 0).all()


def test_margins_of_few_kinds_have_one_knot() -> None:
    margins, labels = np.repeat([-1.0, 0.0, 1.0], [10, 80, 10]), np.tile([0.0, 1.0], 50)
    assert len(fit_linear_spline(margins, labels, "three kinds").knot_margins) == 1


def test_isotonic_regression_is_the_min_max_of_means_where_there_are_many_pairs() -> None:
    # Source of the oracle: the min-max formula of Robertson, Wright and Dykstra 1988.
    shares = [0.1, 0.3, 0.2, 0.6, 0.55, 0.5, 0.9]
    margins = np.repeat(np.arange(7.0), 1000)
    labels = np.concatenate([(np.arange(1000) < 1000 * share) for share in shares]).astype(float)
    expected = [
        max(min(np.mean(shares[j : k + 1]) for k in range(i, 7)) for j in range(i + 1))
        for i in range(7)
    ]
    found = fit_isotonic(margins, labels, "steps")
    assert len(found.knot_margins) == len(set(np.round(expected, 9)))
    for centre, log_odds in zip(found.knot_margins, found.knot_log_odds, strict=True):
        share = float(sigmoid(np.array([log_odds]))[0])
        assert share == pytest.approx(expected[round(centre)], abs=2e-3)


def test_a_block_of_few_pairs_is_drawn_towards_the_platt_map() -> None:
    margins = np.concatenate([np.linspace(-3, 3, 200), [4.0, 4.1, 4.2]])
    labels = np.concatenate([np.tile([1.0, 0.0], 100), [1.0, 1.0, 1.0]])
    found = fit_isotonic(margins, labels, "three on top")
    top = float(sigmoid(np.array(found.knot_log_odds[-1:]))[0])
    platt = float(sigmoid(fit_platt(margins, labels, "").to_log_odds(np.array([4.1])))[0])
    assert top == pytest.approx((3 + 2 * platt) / 5, abs=0.01)


def test_blocks_that_the_prior_turns_over_are_pooled_again() -> None:
    # The block of one at 1.0 is above its neighbour until two pairs of the Platt map join it.
    margins = np.repeat([-2.0, -1.0, 0.0, 1.0], [500, 500, 100, 1])
    labels = np.repeat([0.5, 0.5, 0.9, 0.92], [500, 500, 100, 1])
    at_one = float(sigmoid(fit_platt(margins, labels, "").to_log_odds(np.array([1.0])))[0])
    assert (0.92 + 2 * at_one) / 3 < 0.89
    found = fit_isotonic(margins, labels, "four places")
    assert len(found.knot_margins) == 2
    assert 0 < found.knot_margins[1] < 0.1


@every_fit
def test_separable_labels_give_a_finite_rising_map(fit: Fit) -> None:
    margins = np.concatenate([np.linspace(-9, -1, 40), np.linspace(1, 9, 40)])
    scores = sigmoid(
        fit(margins, (margins > 0).astype(np.float64), "separable").to_log_odds(margins)
    )
    assert (np.diff(scores) > 0).all()
    assert scores[0] > 0
    assert scores[-1] < 1


@every_fit
@given(
    rows=st.lists(st.tuples(st.floats(-50, 50, width=32), st.floats(0, 1)), min_size=2, max_size=40)
)
def test_whatever_the_pairs_say_the_map_is_valid_and_keeps_their_order(
    fit: Fit, rows: list[tuple[float, float]]
) -> None:
    margins, labels = np.array(rows).T
    log_odds = fit(margins, labels, "anything").to_log_odds(np.sort(margins))
    assert np.isfinite(log_odds).all()
    assert (np.diff(log_odds)[np.diff(np.sort(margins)) > 1e-6] > 0).all()


def test_certainty_is_limited_by_how_many_pairs_were_seen() -> None:
    margins, labels = np.repeat([-1.0, 1.0], 10), np.repeat([0.0, 1.0], 10)
    scores = sigmoid(fit_platt(margins, labels, "ten of each").to_log_odds(np.array([-1.0, 1.0])))
    assert scores.tolist() == pytest.approx([1 / 12, 11 / 12], abs=1e-5)
