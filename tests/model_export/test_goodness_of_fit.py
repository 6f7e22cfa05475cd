from __future__ import annotations

import numpy as np
import pytest

from model_export.goodness_of_fit import chance_calibration_error
from model_export.metrics import expected_calibration_error


def test_scores_that_are_right_exceed_it_one_time_in_twenty() -> None:
    rng = np.random.default_rng(3)
    scores = rng.beta(0.6, 0.8, 300)
    limit = chance_calibration_error(scores)
    labels = rng.random((1000, 300)) < scores
    share = np.mean([expected_calibration_error(draw, scores) > limit for draw in labels])
    assert 0.02 < share < 0.09


def test_more_pairs_leave_less_to_chance() -> None:
    scores = np.linspace(0.01, 0.99, 4000)
    ratio = chance_calibration_error(scores[::16]) / chance_calibration_error(scores)
    assert ratio == pytest.approx(4, rel=0.15)  # the root of 16


def test_certain_scores_leave_nothing_to_chance() -> None:
    assert chance_calibration_error([0.0, 1.0] * 50) == 0


def test_the_same_scores_have_the_same_limit() -> None:
    scores = np.linspace(0, 1, 50)
    assert chance_calibration_error(scores) == chance_calibration_error(scores)
