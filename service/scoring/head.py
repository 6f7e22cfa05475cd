"""What the model's outputs mean, and the one number per pair that they come to."""

from __future__ import annotations

from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, model_validator

Logits = NDArray[np.float32]
Margins = NDArray[np.float64]


class Head(BaseModel):
    """What the model's outputs mean.

    `binary`: one logit, or two of which `relevant_index` is the relevant class.
    `multiclass`: three or more classes without an order, `relevant_index` is the relevant one.
    `ordinal`: one logit per grade. `grades` has each one's value in 0-1, worst 0 and best 1;
    empty means evenly spaced, worst grade first.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["binary", "multiclass", "ordinal"] = Field(description="Of the outputs.")
    n_logits: int = Field(ge=1, description="Outputs for each pair.")
    relevant_index: int = Field(default=0, ge=0, description="Which one means relevant.")
    grades: tuple[FiniteFloat, ...] = Field(
        default=(), description="Value of each grade in 0-1; empty means evenly spaced."
    )

    @model_validator(mode="after")
    def _outputs_fit_the_kind(self) -> Self:
        if self.kind == "ordinal":
            self._check_grades()
            return self
        if self.kind == "binary" and self.n_logits > 2:
            raise ValueError(f"a binary head has one or two logits, not {self.n_logits}")
        if self.kind == "multiclass" and self.n_logits < 3:
            raise ValueError(f"a multiclass head has three or more logits, not {self.n_logits}")
        if self.relevant_index >= self.n_logits:
            raise ValueError(
                f"relevant_index is {self.relevant_index}, and the last of {self.n_logits} logits "
                f"is {self.n_logits - 1}"
            )
        if self.grades:
            raise ValueError(f"a {self.kind} head has no grades; only an ordinal one has")
        return self

    def _check_grades(self) -> None:
        if self.n_logits < 2:
            raise ValueError("an ordinal head has a logit for each of two or more grades")
        if self.relevant_index:
            raise ValueError("an ordinal head has no relevant_index: every grade counts")
        if not self.grades:
            return
        if len(self.grades) != self.n_logits:
            raise ValueError(f"{len(self.grades)} grades for {self.n_logits} logits")
        if min(self.grades) != 0 or max(self.grades) != 1:
            raise ValueError(
                f"grades are values from 0 (worst) to 1 (best), and both ends occur; these go "
                f"from {min(self.grades):g} to {max(self.grades):g}"
            )


def margin(logits: Logits, head: Head) -> Margins:
    """One number per pair that grows with relevance: the log-odds before calibration.

    Args:
        logits: (n, k) with k = `head.n_logits`.
        head: What the k outputs mean.

    Returns:
        (n,) log-odds; NaN where a logit is not finite. One logit: itself. Classes: the log-odds
        of the relevant one under softmax, which are its logit less the logsumexp of the others.
        Ordered grades: the log-odds of the expected grade. All of it in logarithms, so that
        certain pairs keep their order instead of meeting at the smallest number.
    """
    values = logits.astype(np.float64)  # (n, k)
    values[~np.isfinite(values).all(axis=1)] = np.nan  # inf - inf would warn
    if head.kind == "ordinal":
        grades = np.array(head.grades or np.linspace(0.0, 1.0, head.n_logits))
        return _log_weighted(values, grades) - _log_weighted(values, 1.0 - grades)
    relevant = values[:, head.relevant_index]
    if head.n_logits == 1:
        return relevant
    return relevant - _log_sum_exp(np.delete(values, head.relevant_index, axis=1))


def _log_weighted(values: NDArray[np.float64], weights: NDArray[np.float64]) -> Margins:
    """Logarithm of the weighted sum of exponentials, over the columns that weigh anything."""
    counts = weights > 0
    return _log_sum_exp(values[:, counts] + np.log(weights[counts]))


def _log_sum_exp(values: NDArray[np.float64]) -> Margins:
    """(n,) log(sum(exp(row))); exp only ever sees numbers <= 0."""
    largest = values.max(axis=1)
    return np.asarray(largest + np.log(np.exp(values - largest[:, None]).sum(axis=1)))
