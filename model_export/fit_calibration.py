"""Which score map makes scores mean what they say: six are fitted, the data decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model_export.calibration_fit import CalibrationFit, Candidate, figures_of, mean_of
from model_export.errors import ExportError, RelevanceReversed
from model_export.goodness_of_fit import chance_calibration_error
from model_export.logistic import fit_logistic
from model_export.metrics import auc, pair_log_losses
from model_export.query_folds import query_folds
from model_export.score_maps import FITS, Fit
from service.scoring.calibration import MAX_OFFSET, ScoreCalibration, sigmoid

MIN_PAIRS_PER_CLASS = 10
UNTESTED_METHOD = "platt"
"""Served where cross-validation is impossible: two numbers, which need no test to be trusted."""
DEALS = 5
"""How often queries are dealt out to folds: with few of them, one deal favours one map or another
by more than the maps differ."""


def require_both_classes(labels: ArrayLike) -> tuple[int, int]:
    """How many pairs are relevant (label above 0.5) and how many are not.

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
    margins: ArrayLike, labels: ArrayLike, groups: Sequence[str], fitted_on: str
) -> CalibrationFit:
    """Fit every kind of map and choose the simplest that is as good as the best.

    Good is a low log loss on held-out queries. A more flexible map has to be better by more than
    one standard error of the difference: the pairs of a query share their fate, so the error is
    that of a mean over queries. One and no more, since a parameter too many costs little
    (about 1 / (2 * pairs) nats) and one too few may cost much. The identity has no such privilege,
    for nobody fitted it: it is chosen where nothing beats it, and what does worse than it on
    held-out queries is never chosen.

    With few queries that error is large, and hides a map of the wrong shape: scores in the middle
    too low and at both ends too high, say, as where two sources with notions of their own are
    mixed. So of the good ones a map goes before simpler ones where these miss the labels by more
    than chance would and it does not.

    Soft labels are probabilities: they enter the fit, the log loss and the Brier score as they
    are, because a score of 0.7 is right where seven of ten people say relevant. Only the count of
    the classes cuts them at 0.5.

    Args:
        margins: (n,) log-odds of relevance before calibration.
        labels: (n,) relevance in 0-1.
        groups: (n,) query of each pair.
        fitted_on: What the pairs were, for the manifest.

    Raises:
        ExportError: Too few pairs of one class, margins that are not finite or do not grow with
            relevance, or labels outside 0-1.

    Source: the one-standard-error rule of Breiman et al. 1984, on paired differences; a test of
    the shape as Hosmer and Lemeshow 1980 do it, by `chance_calibration_error`.
    """
    values, targets = np.asarray(margins, np.float64), np.asarray(labels, np.float64)
    if not len(values) == len(targets) == len(groups):
        raise ValueError(f"{len(values)} margins, {len(targets)} labels, {len(groups)} groups")
    require_both_classes(targets)
    require_rising(values, targets)
    maps = [fit(values, targets, fitted_on) for fit in FITS]
    deals = [query_folds(groups, targets > 0.5, deal=deal) for deal in range(DEALS)]
    folds = [deal for deal in deals if deal is not None]
    if not folds:
        candidates = tuple(_in_sample(fitted, values, targets) for fitted in maps)
        chosen = next(fitted for fitted in maps if fitted.method == UNTESTED_METHOD)
        return CalibrationFit(chosen, candidates, n_folds=0, held_out_scores=None)
    held_out = [[_held_out_scores(fit, values, targets, deal) for deal in folds] for fit in FITS]
    losses = [
        np.mean([pair_log_losses(targets, scores) for scores in by_deal], axis=0)
        for by_deal in held_out
    ]
    best = min(losses, key=lambda loss: float(loss.mean()))
    candidates = tuple(
        replace(
            _in_sample(fitted, values, targets),
            cross_validated=mean_of([figures_of(targets, scores) for scores in by_deal]),
            behind_best=float((loss - best).mean()),
            behind_best_error=_standard_error(loss - best, groups),
        )
        for fitted, by_deal, loss in zip(maps, held_out, losses, strict=True)
    )
    index = _choose(candidates, losses)
    return CalibrationFit(maps[index], candidates, int(folds[0].max()) + 1, held_out[index][0])


def _choose(candidates: Sequence[Candidate], losses: Sequence[NDArray[np.float64]]) -> int:
    before = float(losses[0].mean())
    good = [
        index
        for index, loss in enumerate(losses)
        if candidates[index].is_as_good_as_best and float(loss.mean()) < before
    ]
    of_shape = [index for index in good if candidates[index].has_the_shape]
    return (of_shape or good or [0])[0]


def require_rising(margins: ArrayLike, labels: ArrayLike) -> None:
    """Go on only where relevance grows with the log-odds, so that there is something to map.

    Args:
        margins: (n,) log-odds of relevance before calibration.
        labels: (n,) relevance in 0-1, some above 0.5 and some not.

    Raises:
        ExportError: Margins that are not finite or do not grow with relevance, or labels outside
            0-1.
    """
    margins, labels = np.asarray(margins, np.float64), np.asarray(labels, np.float64)
    wrong = int((~(np.abs(margins) <= MAX_OFFSET)).sum())  # NaN compares false
    if wrong:
        raise ExportError(
            f"score calibration got {wrong} margins that are not finite or beyond {MAX_OFFSET:g}"
        )
    if not ((labels >= 0) & (labels <= 1)).all():
        raise ExportError("score calibration needs labels in 0-1")
    slope = 0.0
    if np.ptp(margins) > 0:
        spread = float(margins.std())
        slope = fit_logistic(margins / spread, 0.98 * labels + 0.01)[0] / spread
    if slope <= 0:
        raise RelevanceReversed(slope, auc(labels, margins))


def _held_out_scores(
    fit: Fit, margins: NDArray[np.float64], targets: NDArray[np.float64], folds: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(n,) scores, those of each fold by a map fitted on the other folds."""
    scores = np.empty_like(margins)
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        fitted = fit(margins[~held_out], targets[~held_out], "the other folds")
        scores[held_out] = sigmoid(fitted.to_log_odds(margins[held_out]))
    return scores


def _in_sample(
    fitted: ScoreCalibration, margins: NDArray[np.float64], targets: NDArray[np.float64]
) -> Candidate:
    scores = sigmoid(fitted.to_log_odds(margins))
    chance = chance_calibration_error(scores)
    return Candidate(fitted, figures_of(targets, scores), chance, None, None, None)


def _standard_error(differences: NDArray[np.float64], groups: Sequence[str]) -> float:
    """Of the mean difference, when whole queries are drawn rather than pairs."""
    _, query_of_pair = np.unique(np.asarray(groups), return_inverse=True)
    sums = np.bincount(query_of_pair, weights=differences - differences.mean())
    n_queries = len(sums)
    return float(np.sqrt(n_queries / (n_queries - 1) * (sums**2).sum()) / len(differences))
