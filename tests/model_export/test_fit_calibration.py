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


def test_too_few_pairs_of_one_class_are_refused_with_the_counts() -> None:
    with pytest.raises(ExportError, match="got 3 relevant and 20 others"):
        fit_score_calibration(np.arange(23.0), [1] * 3 + [0] * 20, "few")


def test_logits_that_fall_with_relevance_are_refused() -> None:
    margins, labels = simulated(1.0, 0.0)
    with pytest.raises(ExportError, match="which label means relevant"):
        fit_score_calibration(-margins, labels, "upside down")
