"""The few figures of scores against labels that exports and trainings keep; more: `evaluation`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_export.metrics import auc, expected_calibration_error, log_loss
from model_export.pairs import LabelledPair
from model_export.ranking_metrics import ndcg_at_k

NDCG_PLACES = 10
CHANCE_AUC = 0.5
FIGURE_NAMES = {"auc": "AUC", "ndcg_at_10": "NDCG@10"}


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures of scores against labels; None where the labels do not allow one.

    Attributes:
        auc: Area under the ROC curve.
        ndcg_at_10: Mean over the queries that can be ranked.
        pairs: How many were judged.
        log_loss: Mean negative log-likelihood of the labels, nats.
        calibration_error: Expected calibration error over ten equally filled bins.
    """

    auc: float | None
    ndcg_at_10: float | None
    pairs: int
    log_loss: float
    calibration_error: float


def judge(pairs: Sequence[LabelledPair], scores: NDArray[np.float64]) -> Quality:
    """Figures of `scores` (n,) against the pairs' labels and grades."""
    labels = np.array([pair.label for pair in pairs])
    gains = [pair.gain for pair in pairs]
    return Quality(
        auc=_known(auc(labels, scores)),
        ndcg_at_10=_known(ndcg_at_k([p.query for p in pairs], gains, scores, NDCG_PLACES)),
        pairs=len(pairs),
        log_loss=log_loss(labels, scores),
        calibration_error=expected_calibration_error(labels, scores),
    )


def nothing_learnt(of_dev: float, by_chance: float = CHANCE_AUC, figure: str = "auc") -> str | None:
    """A sentence where a trained model is worse than chance on its dev pairs, else None.

    Args:
        of_dev: Its figure.
        by_chance: The same of scores that are all equal.
        figure: Field of `Quality` that it is.
    """
    if of_dev >= by_chance:
        return None
    name = FIGURE_NAMES[figure]
    return f"the model has learnt nothing: dev {name} {of_dev:.2f}, where chance is {by_chance:.2g}"


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value
