"""Logistic regression on a few features, plain or with slopes that must not vanish."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from numpy.typing import NDArray

NEWTON_STEPS = 100
CONVERGED_GRADIENT = 1e-9
RIDGE = 1e-6

Column = NDArray[np.float64]


def fit_logistic(values: Column, targets: Column) -> tuple[float, float]:
    """Slope and intercept that turn a value into the log-odds of its target.

    Args:
        values: (n,) one feature.
        targets: (n,) in 0-1, not separable by a threshold unless they are smoothed.
    """
    features = np.stack([values, np.ones_like(values)], axis=1)
    slope, intercept = _newton(features, targets, np.zeros_like(values))
    return float(slope), float(intercept)


def fit_rising(
    rising: NDArray[np.float64], others: NDArray[np.float64], targets: Column, floor: float
) -> tuple[list[float], list[float]]:
    """Weights of the best logistic regression whose first weights are all at least `floor`.

    The loss is convex, so the optimum either is the free one or has some of the weights at the
    floor. With two of them these are four small fits, with three eight: all are tried and the best
    is taken.

    Args:
        rising: (n, d) features whose weights are bounded.
        others: (n, e) features whose weights are free; a column of ones is an intercept.
        targets: (n,) in 0-1.
        floor: Positive.

    Returns:
        The d bounded and the e free weights.
    """
    n_rising = rising.shape[1]
    features = np.concatenate([rising, others], axis=1)
    best, best_loss = np.empty(0), np.inf
    for n_held in range(n_rising + 1):
        for held in combinations(range(n_rising), n_held):
            loose = [column for column in range(features.shape[1]) if column not in held]
            offset = floor * rising[:, list(held)].sum(axis=1)
            weights = np.full(features.shape[1], floor)
            weights[loose] = _newton(features[:, loose], targets, offset)
            loss = _loss(features @ weights, targets)
            if (weights[:n_rising] >= floor).all() and loss < best_loss:
                best, best_loss = weights, loss
    return best[:n_rising].tolist(), best[n_rising:].tolist()


def _loss(log_odds: Column, targets: Column) -> float:
    return float((np.logaddexp(0.0, log_odds) - targets * log_odds).sum())


def _newton(features: NDArray[np.float64], targets: Column, offset: Column) -> NDArray[np.float64]:
    """Newton's method on the log-loss with step halving: a full step can overshoot far away."""
    n_features = features.shape[1]
    ridge = RIDGE * np.eye(n_features)

    def loss(weights: NDArray[np.float64]) -> float:
        return _loss(features @ weights + offset, targets) + float(weights @ ridge @ weights) / 2

    weights = np.zeros(n_features)
    if not n_features:
        return weights
    for _ in range(NEWTON_STEPS):
        # The plain sigmoid, which is the derivative of the loss; the one that serves has a tail.
        p = 0.5 * (1.0 + np.tanh((features @ weights + offset) / 2))
        gradient = features.T @ (p - targets) + ridge @ weights
        if float(np.abs(gradient).max()) < CONVERGED_GRADIENT * len(targets):
            break
        hessian = (features * (p * (1 - p))[:, None]).T @ features + ridge
        step, size = np.linalg.solve(hessian, gradient), 1.0
        while loss(weights - size * step) > loss(weights) and size > 1e-6:
            size /= 2
        weights = weights - size * step
    return weights
