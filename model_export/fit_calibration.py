"""From raw margins to probabilities that mean what they say: Platt scaling on labelled pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model_export.errors import ExportError
from service.scoring.calibration import ScoreCalibration, sigmoid

MIN_PAIRS_PER_CLASS = 10
NEWTON_STEPS = 100
CONVERGED_GRADIENT = 1e-9


def fit_logistic(values: NDArray[np.float64], targets: NDArray[np.float64]) -> tuple[float, float]:
    """Slope and intercept that turn a value into the log-odds of its target.

    Newton's method on the log-loss with step halving, since a full step can overshoot far from
    the optimum.

    Args:
        values: (n,) one feature.
        targets: (n,) in 0-1, not separable by a threshold unless they are smoothed.
    """
    features = np.stack([values, np.ones_like(values)], axis=1)  # (n, 2)
    ridge = 1e-6 * np.eye(2)

    def loss(weights: NDArray[np.float64]) -> float:
        z = features @ weights
        return float((np.logaddexp(0.0, z) - targets * z).sum() + weights @ ridge @ weights / 2)

    weights = np.zeros(2)
    for _ in range(NEWTON_STEPS):
        p = sigmoid(features @ weights)
        gradient = features.T @ (p - targets) + ridge @ weights
        if float(np.abs(gradient).max()) < CONVERGED_GRADIENT * len(values):
            break
        hessian = (features * (p * (1 - p))[:, None]).T @ features + ridge
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while loss(weights - size * step) > loss(weights) and size > 1e-6:
            size /= 2
        weights = weights - size * step
    return float(weights[0]), float(weights[1])


def require_both_classes(labels: ArrayLike) -> tuple[int, int]:
    """How many pairs are relevant and how many are not.

    Raises:
        ExportError: One class has too few for a calibration that means anything.
    """
    relevant = np.asarray(labels, dtype=np.float64) > 0.5
    n_relevant, n_other = int(relevant.sum()), int((~relevant).sum())
    if min(n_relevant, n_other) < MIN_PAIRS_PER_CLASS:
        raise ExportError(
            f"score calibration needs at least {MIN_PAIRS_PER_CLASS} pairs of each class, "
            f"got {n_relevant} relevant and {n_other} others"
        )
    return n_relevant, n_other


def fit_score_calibration(
    margins: ArrayLike, labels: ArrayLike, fitted_on: str
) -> ScoreCalibration:
    """Platt scaling with his smoothed targets, which keep it finite on separable data.

    Args:
        margins: (n,) log-odds of relevance before calibration.
        labels: (n,) relevance; above 0.5 counts as relevant.
        fitted_on: What the pairs were, for the manifest.

    Raises:
        ExportError: Too few pairs of one class, or margins that do not grow with relevance.

    Source: Platt 1999, section 2.2 (targets (n+ + 1) / (n+ + 2) and 1 / (n- + 2)).
    """
    values = np.asarray(margins, dtype=np.float64)
    relevant = np.asarray(labels, dtype=np.float64) > 0.5
    n_relevant, n_other = require_both_classes(labels)
    targets = np.where(relevant, (n_relevant + 1) / (n_relevant + 2), 1 / (n_other + 2))
    slope, intercept = fit_logistic(values, targets)
    if slope <= 0:
        raise ExportError(
            f"score calibration found a slope of {slope:.3g}: higher logits mean less relevant; "
            "check which label means relevant"
        )
    return ScoreCalibration(slope=slope, intercept=intercept, fitted_on=fitted_on)
