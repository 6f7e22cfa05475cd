from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.errors import ExportError
from model_export.fit_calibration import fit_score_calibration
from model_export.metrics import log_loss
from service.scoring.calibration import sigmoid


def simulated(
    slope: float, intercept: float, n_pairs: int = 20000
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    rng = np.random.default_rng(1)
    margins = rng.normal(0, 3, n_pairs)
    return margins, rng.random(n_pairs) < sigmoid(slope * margins + intercept)


@pytest.mark.parametrize(("slope", "intercept"), [(1.0, 0.0), (0.4, -1.0), (3.0, 2.0)])
def test_the_map_that_made_the_labels_is_found_again(slope: float, intercept: float) -> None:
    margins, labels = simulated(slope, intercept)
    fitted = fit_score_calibration(margins, labels, "simulation")
    assert fitted.slope == pytest.approx(slope, rel=0.1)
    assert fitted.intercept == pytest.approx(intercept, abs=0.1)
    assert fitted.fitted_on == "simulation"


def test_calibrated_scores_fit_the_labels_better() -> None:
    margins, labels = simulated(0.4, -1.0)
    fitted = fit_score_calibration(margins, labels, "simulation")
    before, after = sigmoid(margins), sigmoid(fitted.slope * margins + fitted.intercept)
    assert log_loss(labels, after) < log_loss(labels, before)


def test_separable_labels_give_a_finite_map() -> None:
    margins = np.concatenate([np.linspace(-9, -1, 40), np.linspace(1, 9, 40)])
    fitted = fit_score_calibration(margins, margins > 0, "separable")
    assert 0 < fitted.slope < 100


def test_certainty_is_limited_by_how_many_pairs_were_seen() -> None:
    margins, labels = np.repeat([-1.0, 1.0], 10), np.repeat([0, 1], 10)
    fitted = fit_score_calibration(margins, labels, "ten of each")
    scores = sigmoid(fitted.slope * np.array([-1.0, 1.0]) + fitted.intercept)
    assert scores.tolist() == pytest.approx([1 / 12, 11 / 12], abs=1e-5)


def test_too_few_pairs_of_one_class_are_refused_with_the_counts() -> None:
    with pytest.raises(ExportError, match="got 3 relevant and 20 others"):
        fit_score_calibration(np.arange(23.0), [1] * 3 + [0] * 20, "few")


def test_logits_that_fall_with_relevance_are_refused() -> None:
    margins, labels = simulated(1.0, 0.0)
    with pytest.raises(ExportError, match="which label means relevant"):
        fit_score_calibration(-margins, labels, "upside down")


def test_the_mean_score_is_the_share_that_is_relevant() -> None:
    margins, labels = simulated(0.7, -2.0)
    fitted = fit_score_calibration(margins, labels, "simulation")
    mean = sigmoid(fitted.slope * margins + fitted.intercept).mean()
    assert mean == pytest.approx(labels.mean(), abs=1e-3)


@pytest.mark.parametrize("scale", [1e-2, 100.0])
def test_the_scale_of_the_logits_does_not_matter(scale: float) -> None:
    margins, labels = simulated(1.0, 0.5)
    fitted = fit_score_calibration(margins * scale, labels, "simulation")
    assert fitted.slope * scale == pytest.approx(1.0, rel=0.1)
    assert fitted.intercept == pytest.approx(0.5, abs=0.1)


def test_ten_pairs_of_each_class_are_enough_and_labels_may_be_soft() -> None:
    margins = np.concatenate([np.linspace(-2, 1, 10), np.linspace(-1, 2, 10)])
    soft = [0.2] * 10 + [0.7] * 10
    hard = [0.0] * 10 + [1.0] * 10
    assert fit_score_calibration(margins, soft, "few") == fit_score_calibration(
        margins, hard, "few"
    )
    with pytest.raises(ExportError, match="got 10 relevant and 9 others"):
        fit_score_calibration(margins[1:], hard[1:], "fewer")
