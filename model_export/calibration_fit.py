"""What the choice of a score map found, for the manifest, the report and whoever doubts it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from model_export.metrics import (
    brier,
    expected_calibration_error,
    log_loss,
)
from service.scoring.calibration import ScoreCalibration


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """How well scores mean what they say.

    Attributes:
        log_loss: Mean negative log-likelihood of the labels, nats.
        brier: Mean squared difference of score and label.
        calibration_error: Expected calibration error over ten equally filled bins.
    """

    log_loss: float
    brier: float
    calibration_error: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """One kind of map.

    Attributes:
        calibration: Fitted on all pairs.
        in_sample: Figures of that map on the pairs it was fitted on: flattering.
        chance_error: `chance_calibration_error` of its scores on these pairs.
        cross_validated: Each pair scored by a map that was fitted without its query, and the mean
            over all deals of folds; None where there were no two folds.
        behind_best: Log loss more than that of the best candidate, cross-validated, nats.
        behind_best_error: Standard error of `behind_best` over queries, nats.
    """

    calibration: ScoreCalibration
    in_sample: CalibrationFigures
    chance_error: float
    cross_validated: CalibrationFigures | None
    behind_best: float | None
    behind_best_error: float | None

    @property
    def is_as_good_as_best(self) -> bool:
        """Whether it is behind by no more than noise."""
        if self.behind_best is None or self.behind_best_error is None:
            return False
        return self.behind_best <= self.behind_best_error

    def beats(self, other: Candidate) -> bool:
        """Whether its cross-validated log loss is lower than the other's."""
        if self.cross_validated is None or other.cross_validated is None:
            return False
        return self.cross_validated.log_loss < other.cross_validated.log_loss

    @property
    def has_the_shape(self) -> bool:
        """Whether what is left of the calibration error may be chance."""
        return self.in_sample.calibration_error <= self.chance_error


@dataclass(frozen=True, slots=True)
class CalibrationFit:
    """The map to serve and why.

    Attributes:
        calibration: The chosen map, fitted on all pairs.
        candidates: All kinds, simplest first; the first is the identity.
        n_folds: Of the cross-validation; 0 if there was none.
        held_out_scores: (n,) of the pairs in their order, each by a map of the chosen kind that was
            fitted without its query (the first deal); None if there were no folds. For a
            reliability diagram.
    """

    calibration: ScoreCalibration
    candidates: tuple[Candidate, ...]
    n_folds: int
    held_out_scores: NDArray[np.float64] | None = field(compare=False)

    @property
    def before(self) -> Candidate:
        """The identity: scores without calibration."""
        return self.candidates[0]

    @property
    def after(self) -> Candidate:
        """The chosen one. Best of six, so its cross-validated figures flatter by a trifle."""
        return next(c for c in self.candidates if c.calibration == self.calibration)

    @property
    def left_for_shape(self) -> tuple[Candidate, ...]:
        """Simpler than the chosen one and as good, but with more ECE than chance would give."""
        if not self.after.has_the_shape:
            return ()
        return tuple(
            candidate
            for candidate in self.candidates[: self.candidates.index(self.after)]
            if candidate.is_as_good_as_best
            and not candidate.has_the_shape
            and candidate.beats(self.before)
        )

    def rows(self) -> list[dict[str, Any]]:
        """The cross-validated figures as a table, a row for each kind; none without folds."""
        return [
            {
                "method": candidate.calibration.method,
                "log_loss": candidate.cross_validated.log_loss,
                "brier": candidate.cross_validated.brier,
                "ece": candidate.cross_validated.calibration_error,
                "chosen": candidate.calibration == self.calibration,
            }
            for candidate in self.candidates
            if candidate.cross_validated is not None
        ]

    def figures(self) -> dict[str, Any]:
        """For the manifest: both sets of figures before and after, by JSON's types alone."""
        return {
            "method": self.calibration.method,
            "n_folds": self.n_folds,
            "before": _both_figures(self.before),
            "after": _both_figures(self.after),
        }


def _both_figures(candidate: Candidate) -> dict[str, Any]:
    held_out = candidate.cross_validated
    return {
        "in_sample": asdict(candidate.in_sample),
        "cross_validated": None if held_out is None else asdict(held_out),
    }


def figures_of(labels: ArrayLike, scores: ArrayLike) -> CalibrationFigures:
    """Figures of scores (n,) against labels (n,), both in 0-1."""
    return CalibrationFigures(
        log_loss=log_loss(labels, scores),
        brier=brier(labels, scores),
        calibration_error=expected_calibration_error(labels, scores),
    )


def mean_of(figures: Sequence[CalibrationFigures]) -> CalibrationFigures:
    """The mean of each figure, of at least one set."""
    columns = zip(*map(astuple, figures), strict=True)
    return CalibrationFigures(*(sum(column) / len(figures) for column in columns))
