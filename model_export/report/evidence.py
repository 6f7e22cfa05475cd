"""What an export measured, as the report needs it: plain arrays, no model and no session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_export.report.latency import Latency

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ParityStage:
    """One comparison with the original model.

    Attributes:
        name: What was compared, like "torch against int8".
        figures: `Fidelity.figures()` of it.
        tolerances: `Tolerances` as a dict, keys as in `figures`.
    """

    name: str
    figures: Mapping[str, float]
    tolerances: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Evidence:
    """n pairs, the made ones first, then the labelled ones if there are any.

    Scores are uncalibrated where not said otherwise, as in `parity`: a flat calibration must not
    hide a difference.

    Attributes:
        texts: n times query and ad text, as the model was given them. Hostile input.
        n_made: How many pairs the export made itself; the rest is labelled.
        labels: (n - n_made,) relevance in 0-1; None when no pair is labelled.
        lengths_tokens: (n,) with special tokens, after truncation.
        truncated: (n,) bool: some of the text did not fit.
        reference_scores: (n,) of the original torch model.
        fp32_scores: (n,) of the graph before quantization.
        served_scores: (n,) of the graph in the bundle.
        calibrated_scores: (n,) of the graph in the bundle, as the service answers them.
        spread: (m,) of the first m pairs: largest change of the served score in other company.
        stages: Every comparison of the export, with its tolerances; the served graph's last.
        quality: {"torch": figures, "served": figures} on the labelled pairs, or empty.
        calibration_rows: Candidate maps as {"method", "log_loss", "brier", "ece", "chosen"},
            figures cross-validated; empty when none were tried. Other figures are shown too.
        held_out_scores: (n - n_made,) calibrated scores of the labelled pairs, each by a map that
            was fitted without it; None when there are none.
        latency: None leaves it out.
        facts: The manifest, dumped.
    """

    texts: Sequence[tuple[str, str]]
    n_made: int
    labels: Scores | None
    lengths_tokens: NDArray[np.int64]
    truncated: NDArray[np.bool_]
    reference_scores: Scores
    fp32_scores: Scores
    served_scores: Scores
    calibrated_scores: Scores
    spread: Scores
    stages: Sequence[ParityStage]
    quality: Mapping[str, Mapping[str, Any]]
    facts: Mapping[str, Any]
    calibration_rows: Sequence[Mapping[str, Any]] = ()
    held_out_scores: Scores | None = None
    latency: Latency | None = None

    def __post_init__(self) -> None:
        """Refuse what would make a misleading page.

        Raises:
            ValueError: Lengths do not fit each other, or a score is not a number.
        """
        n, n_labelled = len(self.texts), len(self.texts) - self.n_made
        expected: dict[str, int] = {
            "lengths_tokens": n,
            "truncated": n,
            "reference_scores": n,
            "fp32_scores": n,
            "served_scores": n,
            "calibrated_scores": n,
            "labels": n_labelled,
            "held_out_scores": n_labelled,
        }
        if n == 0 or not 0 <= self.n_made <= n or len(self.spread) == 0:
            raise ValueError("a report needs at least one pair and the spread of at least one")
        if not self.stages:
            raise ValueError("a report without a parity stage would say yes to nothing")
        if (self.labels is None) != (n_labelled == 0):
            raise ValueError(f"{n_labelled} pairs are not made ones: labels go with them, or None")
        for name, length in expected.items():
            values = getattr(self, name)
            if values is not None and np.shape(values) != (length,):
                raise ValueError(f"{name} has shape {np.shape(values)}, expected {(length,)}")
        for name in (*expected, "spread"):
            values = getattr(self, name)
            if values is not None and not np.isfinite(values).all():
                raise ValueError(f"{name} holds a value that is not a number")

    @property
    def shown_pairs(self) -> slice:
        """The labelled pairs where there are some, since they are the user's; else the made."""
        return slice(0, self.n_made) if self.labels is None else slice(self.n_made, None)
