"""Fitting each kind of score map to margins and targets. Which one is served: `fit_calibration`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from model_export.logistic import fit_rising
from service.scoring.calibration import (
    MAX_SLOPE,
    MIN_SLOPE,
    Beta,
    Identity,
    Isotonic,
    LinearSpline,
    Platt,
    ScoreCalibration,
    Temperature,
    sides,
    sigmoid,
)

Column = NDArray[np.float64]
Fit = Callable[[Column, Column, str], ScoreCalibration]
"""From margins (n,), targets (n,) in 0-1 and a name for the pairs to a map."""

LEAST_RISE = 0.01
"""Least rise in log-odds over one standard deviation of the margins, for any map anywhere: far
less than any data shows, and far more than float64 needs to keep two pairs apart."""

SPLINE_KNOTS = (1 / 3, 2 / 3)
"""Where the slopes of a linear spline change, as quantiles of the margins: the fewest knots that
give the middle, where auctions are decided, a slope of its own."""

LEAST_STRETCH = 1e-3
"""Least distance of two of these knots, in standard deviations of the margins."""

PRIOR_PAIRS = 2.0
"""Imagined pairs in each isotonic block, as many as Platt's targets add to the whole."""


def fit_identity(margins: Column, targets: Column, fitted_on: str) -> Identity:
    """Nothing to fit: what every other map has to beat."""
    del margins, targets
    return Identity(fitted_on=fitted_on)


def fit_temperature(margins: Column, targets: Column, fitted_on: str) -> Temperature:
    """Least log loss on Platt's targets, slope alone."""
    none = np.empty((len(margins), 0))
    (slope,), _ = fit_rising(margins[:, None], none, _smoothed(targets), _floor(margins))
    return Temperature(temperature=1 / slope, fitted_on=fitted_on)


def fit_platt(margins: Column, targets: Column, fitted_on: str) -> Platt:
    """Least log loss on Platt's targets."""
    ones = np.ones((len(margins), 1))
    (slope,), (intercept,) = fit_rising(margins[:, None], ones, _smoothed(targets), _floor(margins))
    return Platt(slope=slope, intercept=intercept, fitted_on=fitted_on)


def fit_beta(margins: Column, targets: Column, fitted_on: str) -> Beta:
    """Least log loss on Platt's targets; log(p) and -log(1 - p) are the features."""
    minus_log_p, minus_log_rest = sides(margins)
    features = np.stack([-minus_log_p, minus_log_rest], axis=1)
    ones = np.ones((len(margins), 1))
    (a, b), (c,) = fit_rising(features, ones, _smoothed(targets), _floor(margins))
    return Beta(a=a, b=b, c=c, fitted_on=fitted_on)


def fit_linear_spline(margins: Column, targets: Column, fitted_on: str) -> LinearSpline:
    """Least log loss on Platt's targets, with another slope in each third of the pairs."""
    floor = min(1.001 * _floor(margins), MAX_SLOPE)  # rounding must not end below the floor
    low, high = np.quantile(margins, SPLINE_KNOTS)
    # Two as good as equal are one: rounding would leave no rise between them.
    apart = (high - low) * floor > LEAST_STRETCH * LEAST_RISE
    knots = np.array([low, high] if apart else [low])
    edges = np.array([-np.inf, *knots, np.inf])
    # How far each margin goes into each stretch, from the first knot.
    starts, ends = edges[:-1], edges[1:]
    into = np.clip(margins[:, None], starts, ends) - np.clip(knots[0], starts, ends)
    ones = np.ones((len(margins), 1))
    rising, (at_first,) = fit_rising(into, ones, _smoothed(targets), floor)
    slopes = np.minimum(rising, MAX_SLOPE).tolist()
    return LinearSpline(
        knot_margins=tuple(knots.tolist()),
        knot_log_odds=tuple((at_first + np.cumsum([0.0, *np.diff(knots) * slopes[1:-1]])).tolist()),
        slope_below=slopes[0],
        slope_above=slopes[-1],
        fitted_on=fitted_on,
    )


def fit_isotonic(margins: Column, targets: Column, fitted_on: str) -> Isotonic:
    """Isotonic regression with a knot at the centre of each block of pairs.

    Each block also counts two imagined pairs that do as the Platt map of the same pairs says, so
    that a block of three relevant pairs does not promise certainty. That can turn the order of two
    blocks over; they are then pooled again. Past the outermost centres, where the regression is
    constant, and between blocks as good as equal, the map rises by the least that any map may.
    """
    floor = _floor(margins)
    places, index, counts = np.unique(margins, return_inverse=True, return_counts=True)
    means = np.bincount(index, weights=targets) / counts
    centres, sizes, shares = _pool(places, counts.astype(np.float64), means)
    expected = sigmoid(fit_platt(margins, targets, fitted_on).to_log_odds(centres))
    shares = (sizes * shares + PRIOR_PAIRS * expected) / (sizes + PRIOR_PAIRS)
    centres, _, shares = _pool(centres, sizes + PRIOR_PAIRS, shares)
    log_odds = np.log(shares) - np.log1p(-shares)
    steady = 1.001 * floor * centres  # rounding must not end below the floor
    return Isotonic(
        knot_margins=tuple(centres.tolist()),
        knot_log_odds=tuple((np.maximum.accumulate(log_odds - steady) + steady).tolist()),
        slope_below=floor,
        slope_above=floor,
        fitted_on=fitted_on,
    )


FITS: tuple[Fit, ...] = (
    fit_identity,
    fit_temperature,
    fit_platt,
    fit_beta,
    fit_linear_spline,
    fit_isotonic,
)
"""Simplest first: none, one, two, three and four numbers, then as many as the data asks for."""


def _floor(margins: Column) -> float:
    spread = float(margins.std()) if np.ptp(margins) > 0 else 1.0
    return float(np.clip(LEAST_RISE / spread, MIN_SLOPE, MAX_SLOPE))


def _smoothed(targets: Column) -> Column:
    """Targets drawn in from 0 and 1, which keeps the fit finite on separable pairs.

    Source: Platt 1999, section 2.2: (n+ + 1) / (n+ + 2) for 1 and 1 / (n- + 2) for 0; what lies
    between them stays in proportion.
    """
    n_relevant = float(targets.sum())
    high = (n_relevant + 1) / (n_relevant + 2)
    low = 1 / (len(targets) - n_relevant + 2)
    return low + (high - low) * targets


def _pool(places: Column, sizes: Column, shares: Column) -> tuple[Column, Column, Column]:
    """Pool neighbours until shares strictly rise: centre, size and share of each block.

    Source: the pool-adjacent-violators algorithm, Ayer et al. 1955.
    """
    blocks: list[tuple[float, float, float]] = []  # size, size * centre, size * share
    for place, size, share in zip(places.tolist(), sizes.tolist(), shares.tolist(), strict=True):
        block = (size, size * place, size * share)
        while blocks and blocks[-1][2] * block[0] >= block[2] * blocks[-1][0]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    size, moment, total = np.array(blocks).T
    return moment / size, size, total / size
