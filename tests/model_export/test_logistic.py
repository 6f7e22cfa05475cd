from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.logistic import fit_logistic, fit_rising

RNG = np.random.default_rng(3)
VALUES = RNG.normal(0, 2, (4000, 2))
ONES = np.ones((4000, 1))


def labels(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    drawn = np.random.default_rng(4).random(len(log_odds)) < 1 / (1 + np.exp(-log_odds))
    return drawn.astype(np.float64)


def loss(log_odds: NDArray[np.float64], targets: NDArray[np.float64]) -> float:
    return float((np.logaddexp(0, log_odds) - targets * log_odds).sum())


def test_the_slope_and_intercept_that_made_the_labels_are_found() -> None:
    slope, intercept = fit_logistic(VALUES[:, 0], labels(0.7 * VALUES[:, 0] - 1.5))
    assert slope == pytest.approx(0.7, abs=0.08)
    assert intercept == pytest.approx(-1.5, abs=0.12)


def test_soft_targets_are_met_on_average() -> None:
    targets = np.where(VALUES[:, 0] > 0, 0.7, 0.2)
    slope, intercept = fit_logistic(VALUES[:, 0], targets)
    fitted = 1 / (1 + np.exp(-slope * VALUES[:, 0] - intercept))
    assert fitted.mean() == pytest.approx(targets.mean(), abs=1e-6)


def test_weights_above_the_floor_are_those_of_a_free_fit() -> None:
    targets = labels(0.5 * VALUES[:, 0] + 0.1)
    (slope,), (intercept,) = fit_rising(VALUES[:, :1], ONES, targets, 0.01)
    assert (slope, intercept) == pytest.approx(fit_logistic(VALUES[:, 0], targets))


@pytest.mark.parametrize("truth", [(-0.5, 0.8), (0.8, -0.5), (-0.5, -0.5)])
def test_a_weight_that_wants_below_the_floor_stays_on_it_and_the_others_make_the_best_of_it(
    truth: tuple[float, float],
) -> None:
    targets = labels(VALUES @ np.array(truth))
    slopes, (intercept,) = fit_rising(VALUES, ONES, targets, 0.05)
    assert [slope == 0.05 for slope in slopes] == [weight < 0 for weight in truth]
    found = loss(VALUES @ np.array(slopes) + intercept, targets)
    for first in (0.05, 0.3, 0.75, 0.85):  # no allowed neighbour is better
        for second in (0.05, 0.3, 0.75, 0.85):
            for shift in (-0.1, 0.0, 0.1):
                other = loss(VALUES @ np.array([first, second]) + intercept + shift, targets)
                assert other >= found - 1e-3


def test_without_an_intercept_the_line_goes_through_zero() -> None:
    targets = labels(0.5 * VALUES[:, 0])
    (slope,), rest = fit_rising(VALUES[:, :1], np.empty((4000, 0)), targets, 0.01)
    assert rest == []
    assert slope == pytest.approx(0.5, abs=0.07)
