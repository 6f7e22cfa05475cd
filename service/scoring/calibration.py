"""From logits to calibrated scores in 0-1, in float64.

float64 because in float32 a sigmoid is exactly 1.0 from a logit of about 17 on, and ties in the
score are ties in the auction.
"""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

Logits = NDArray[np.float32]
Scores = NDArray[np.float64]


class Head(BaseModel):
    """What the model's outputs mean.

    `binary`: one logit, or two of which `relevant_index` is the relevant class.
    `ordinal`: one logit per grade, worst grade first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["binary", "ordinal"]
    n_logits: int = Field(ge=1)
    relevant_index: int = Field(default=0, ge=0)

    @model_validator(mode="after")
    def _outputs_fit_the_kind(self) -> Self:
        if self.kind == "binary" and (self.n_logits > 2 or self.relevant_index >= self.n_logits):
            raise ValueError("a binary head has one or two logits, one of them the relevant one")
        if self.kind == "ordinal" and self.n_logits < 2:
            raise ValueError("an ordinal head has a logit for each of two or more grades")
        return self


class ScoreCalibration(BaseModel):
    """Platt scaling of the relevance margin: score = sigmoid(slope * margin + intercept).

    The identity is slope 1 and intercept 0; a temperature T is slope 1 / T.

    Source: Platt 1999, "Probabilistic outputs for support vector machines".
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    slope: FiniteFloat = Field(default=1.0, gt=0)
    intercept: FiniteFloat = 0.0
    fitted_on: str = "nothing: identity"


def sigmoid(margin: NDArray[np.float64]) -> Scores:
    """1 / (1 + exp(-margin)) without overflow: exp only ever sees numbers <= 0."""
    exp_negative = np.exp(-np.abs(margin))
    return np.where(margin >= 0, 1.0, exp_negative) / (1.0 + exp_negative)


def margin(logits: NDArray[np.float32], head: Head) -> NDArray[np.float64]:
    """One number per pair that grows with relevance: the log-odds before calibration.

    Args:
        logits: (n, k) with k = `head.n_logits`.
        head: What the k outputs mean.

    Returns:
        (n,). One logit: itself. Two: their difference, since softmax over two is the sigmoid of
        it. Ordered grades: the log-odds of the expected grade scaled to 0-1.
    """
    values = logits.astype(np.float64)  # (n, k)
    if head.kind == "ordinal":
        shifted = np.exp(values - values.max(axis=1, keepdims=True))
        share = shifted / shifted.sum(axis=1, keepdims=True)
        grades = np.linspace(0.0, 1.0, head.n_logits)
        tiny = np.finfo(np.float64).tiny
        worse, better = share @ (1 - grades), share @ grades
        return np.asarray(np.log(np.maximum(better, tiny)) - np.log(np.maximum(worse, tiny)))
    if head.n_logits == 1:
        return np.asarray(values[:, 0])
    relevant = head.relevant_index
    return np.asarray(values[:, relevant] - values[:, 1 - relevant])


def to_scores(logits: Logits, head: Head, calibration: ScoreCalibration) -> Scores:
    """Calibrated probability of relevance.

    Args:
        logits: (n, k) float32 as the model gives them.
        head: What the k outputs mean.
        calibration: Fitted map from margin to probability.

    Returns:
        (n,) float64 in 0-1; NaN where a logit is not finite, which no caller may pass on.
    """
    with np.errstate(invalid="ignore"):
        return sigmoid(calibration.slope * margin(logits, head) + calibration.intercept)
