"""How long will a batch take here? Learned online from the batches that ran.

A batch of n pairs, padded to L tokens, is predicted to take

    per_batch + per_token * (n L) + per_square * (n L^2)

seconds: the overhead of a run, the matrix products, and attention, which compares every token of
a pair with every other. n L is the padded tokens, so all of it follows from pairs and tokens.

The three costs are tracked by an extended Kalman filter on their logarithms: costs stay positive,
an error counts as a ratio, and a direction that no batch has told anything about keeps what the
start-up runs said. Kalman 1960, "A New Approach to Linear Filtering and Prediction Problems".
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Number = TypeVar("Number", float, Floats)

NOISE = 0.1**2
"""Variance of the logarithm of one batch's time around its mean; about 10 % on a shared core."""

DRIFT = 0.005**2
"""Variance that each batch adds to the logarithm of a cost: memory of about twenty batches."""

UNKNOWN = 1.0
"""Variance of the logarithm of a cost that nothing is known of: a factor of e either way."""

OUTLIER_DEVIATIONS = 2.5
"""An error is cut to so many standard deviations: one stalled batch must not move the model far."""

SURPRISES_TO_FORGET = 5
"""So many cut errors in a row and in one direction are a machine that has changed, not outliers."""

DOUBT = 0.95
"""Factor on all costs when work was given up for its predicted cost and nothing can disprove it."""


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What batches are predicted to cost, as it stood at one moment.

    Attributes:
        per_batch_s: Seconds of a run whatever its size.
        per_token_s: Seconds per padded token.
        per_square_s: Seconds per padded token and token that it attends to.
    """

    per_batch_s: float
    per_token_s: float
    per_square_s: float

    def batch_s(self, n_pairs: Number | float, longest_tokens: Number) -> Number:
        """Predicted seconds of one batch; of many where arrays are given."""
        per_pair = longest_tokens * (self.per_token_s + self.per_square_s * longest_tokens)
        return self.per_batch_s + n_pairs * per_pair

    def share_s(self, longest_tokens: Floats, full_pairs: Floats | float) -> Floats:
        """Predicted seconds of each pair's part in a batch of so many pairs of its length."""
        return self.batch_s(full_pairs, longest_tokens) / full_pairs


class CostModel:
    """Learns a `BatchCost`. State: three costs, their uncertainty, the surprises in a row."""

    def __init__(self, first_guess: BatchCost | None = None) -> None:
        """Start from a guess whose proportions matter and whose scale does not.

        Args:
            first_guess: None takes the proportions of a six-layer MiniLM on a CPU.
        """
        self._cost = first_guess or BatchCost(5e-4, 5e-5, 1e-7)
        self._scale_is_known = False
        self._surprises = 0
        self._covariance: list[list[float]] = []
        self._forget()

    @property
    def cost(self) -> BatchCost:
        """The prediction as it stands; a snapshot that later batches do not change."""
        return self._cost

    def observe(self, n_pairs: int, padded_tokens: int, actual_s: float) -> None:
        """Learn from a batch that ran.

        Args:
            n_pairs: Pairs in it.
            padded_tokens: Pairs x longest.
            actual_s: Seconds that it took; not positive ones are ignored.
        """
        if actual_s <= 0.0 or not math.isfinite(actual_s):
            return
        cost = self._cost
        parts = (
            cost.per_batch_s,
            cost.per_token_s * padded_tokens,
            cost.per_square_s * padded_tokens * (padded_tokens / n_pairs),
        )
        predicted_s = sum(parts)
        error = math.log(actual_s / predicted_s)
        if not self._scale_is_known:  # the guess knows nothing of this machine's speed
            self._scale_is_known = True
            self._scale([error] * 3)
            return
        # Plain floats: for 3 x 3 numbers numpy's calls cost ten times the arithmetic.
        slope = [part / predicted_s for part in parts]  # d log(predicted) / d log(cost)
        gain = [sum(map(operator.mul, row, slope)) for row in self._covariance]
        variance = sum(map(operator.mul, slope, gain)) + NOISE
        error = self._cut(error, OUTLIER_DEVIATIONS * math.sqrt(variance))
        for i, row in enumerate(self._covariance):
            for j in range(3):
                row[j] -= gain[i] * gain[j] / variance
            row[i] += DRIFT
        spread = sum(self._covariance[i][i] for i in range(3))
        if spread > 3 * UNKNOWN or abs(self._surprises) >= SURPRISES_TO_FORGET:
            self._forget()
        self._scale([error * entry / variance for entry in gain])

    def doubt(self) -> None:
        """Expect a little less: work was given up and no batch runs that could show it wrong.

        Without this a prediction that has become too high would refuse all work for ever.
        """
        self._scale([math.log(DOUBT)] * 3)

    def _cut(self, error: float, limit: float) -> float:
        """The error, but no larger than the limit; counts how often it was, and which way."""
        if abs(error) <= limit:
            self._surprises = 0
            return error
        # Counted up for batches that were too slow, down for those that were too fast.
        same_way = self._surprises * error > 0
        self._surprises = (self._surprises if same_way else 0) + (1 if error > 0 else -1)
        return math.copysign(limit, error)

    def _forget(self) -> None:
        self._covariance = [[UNKNOWN * (i == j) for j in range(3)] for i in range(3)]
        self._surprises = 0

    def _scale(self, log_factors: Sequence[float]) -> None:
        cost, factors = self._cost, [math.exp(factor) for factor in log_factors]
        self._cost = BatchCost(
            cost.per_batch_s * factors[0],
            cost.per_token_s * factors[1],
            cost.per_square_s * factors[2],
        )
