"""From logits to calibrated scores in 0-1, in float64, in the order of the logits.

float64 because in float32 a sigmoid is exactly 1.0 from a logit of about 17 on, and ties in the
score are ties in the auction.

A score calibration maps the margin (log-odds before calibration) to calibrated log-odds; one
sigmoid then makes a score of them. Every map is strictly increasing by construction, so a
calibration never changes who wins. The bounds on its numbers keep that true in float64: a slope of
1e-300 would be increasing on paper alone.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from service.scoring.head import Head, Logits, Margins, margin

Scores = NDArray[np.float64]
LogOdds = NDArray[np.float64]

MIN_SLOPE, MAX_SLOPE = 1e-6, 1e6
MAX_OFFSET = 1e6

Slope = Annotated[float, Field(ge=MIN_SLOPE, le=MAX_SLOPE, allow_inf_nan=False)]
Offset = Annotated[float, Field(ge=-MAX_OFFSET, le=MAX_OFFSET, allow_inf_nan=False)]

TAIL_FROM = 20.0
"""Log-odds from which `sigmoid` has a heavier tail: no data supports a probability beyond
1 - 2e-9, but the order of the auction must outlast it."""


class _Map(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    fitted_on: str = Field(description="The labelled pairs.")


class Identity(_Map):
    """The margin is the log-odds already."""

    method: Literal["identity"] = Field(default="identity", description="Which map this is.")
    fitted_on: str = Field(default="nothing", description="The labelled pairs.")

    def to_log_odds(self, margins: Margins) -> LogOdds:
        """The margins, (n,)."""
        return margins


class Temperature(_Map):
    """One factor for too certain or too timid models: log-odds = margin / temperature.

    Source: Guo et al. 2017, "On calibration of modern neural networks".
    """

    method: Literal["temperature"] = Field(default="temperature", description="Which map this is.")
    temperature: Annotated[
        float, Field(ge=1 / MAX_SLOPE, le=1 / MIN_SLOPE, allow_inf_nan=False)
    ] = Field(description="Margins are divided by it.")

    def to_log_odds(self, margins: Margins) -> LogOdds:
        """Calibrated log-odds of margins, (n,) each."""
        return margins / self.temperature


class Platt(_Map):
    """A factor and a shift: log-odds = slope * margin + intercept.

    Source: Platt 1999, "Probabilistic outputs for support vector machines".
    """

    method: Literal["platt"] = Field(default="platt", description="Which map this is.")
    slope: Slope = Field(description="Margins are multiplied by it.")
    intercept: Offset = Field(description="Added after that.")

    def to_log_odds(self, margins: Margins) -> LogOdds:
        """Calibrated log-odds of margins, (n,) each."""
        return self.slope * margins + self.intercept


class Beta(_Map):
    """Another slope on either side: log-odds = a * log(p) - b * log(1 - p) + c.

    p is the sigmoid of the margin; its logarithms are taken from the margin, which does not
    overflow. The slope goes from `a` (margin far below 0) to `b` (far above).

    Source: Kull et al. 2017, "Beta calibration". They allow a = 0 or b = 0; here both are
    positive, since a side without a slope is a tie.
    """

    method: Literal["beta"] = Field(default="beta", description="Which map this is.")
    a: Slope = Field(description="Slope far below 0.")
    b: Slope = Field(description="Slope far above 0.")
    c: Offset = Field(description="Shift.")

    def to_log_odds(self, margins: Margins) -> LogOdds:
        """Calibrated log-odds of margins, (n,) each."""
        minus_log_p, minus_log_rest = sides(margins)
        return np.asarray(self.b * minus_log_rest - self.a * minus_log_p + self.c)


def sides(margins: Margins) -> tuple[LogOdds, LogOdds]:
    """-log(p) and -log(1 - p) of p = sigmoid(margin), without computing p."""
    both = np.log1p(np.exp(-np.abs(margins)))
    return np.maximum(-margins, 0.0) + both, np.maximum(margins, 0.0) + both


class _Knots(_Map):
    """Straight lines between knots, continued past the first and the last with their own slopes."""

    knot_margins: tuple[Offset, ...] = Field(min_length=1, description="Rising.")
    knot_log_odds: tuple[Offset, ...] = Field(min_length=1, description="At each knot; rising.")
    slope_below: Slope = Field(description="Before the first knot.")
    slope_above: Slope = Field(description="After the last.")

    @model_validator(mode="after")
    def _knots_rise(self) -> Self:
        if len(self.knot_margins) != len(self.knot_log_odds):
            raise ValueError(
                f"{len(self.knot_margins)} knot_margins for {len(self.knot_log_odds)} knot_log_odds"
            )
        runs, rises = np.diff(self.knot_margins), np.diff(self.knot_log_odds)
        if (runs <= 0).any():
            raise ValueError("knot_margins must be strictly increasing")
        if (rises < MIN_SLOPE * runs).any():
            raise ValueError(
                f"knot_log_odds must rise by at least {MIN_SLOPE:g} per unit of margin"
            )
        return self

    def to_log_odds(self, margins: Margins) -> LogOdds:
        """Calibrated log-odds of margins, (n,) each."""
        below = np.minimum(margins - self.knot_margins[0], 0.0)
        above = np.maximum(margins - self.knot_margins[-1], 0.0)
        between = np.interp(margins, self.knot_margins, self.knot_log_odds)
        return np.asarray(between + self.slope_below * below + self.slope_above * above)


class LinearSpline(_Knots):
    """Few knots, whose slopes were fitted by logistic regression.

    Source: Lucena 2018, "Spline-based probability calibration"; theirs are cubic, which can fall.
    """

    method: Literal["linear_spline"] = Field(
        default="linear_spline", description="Which map this is."
    )


class Isotonic(_Knots):
    """As many knots as the labels have steps.

    Source: Zadrozny and Elkan 2002 for isotonic regression of scores; theirs has steps, which are
    ties, where this has slopes.
    """

    method: Literal["isotonic"] = Field(default="isotonic", description="Which map this is.")


ScoreCalibration = Annotated[
    Identity | Temperature | Platt | Beta | LinearSpline | Isotonic, Field(discriminator="method")
]
"""Any score map; `method` says which."""

_ADAPTER: TypeAdapter[ScoreCalibration] = TypeAdapter(ScoreCalibration)


def parse_score_calibration(fields: object) -> ScoreCalibration:
    """The map that a JSON object describes.

    Raises:
        ValueError: It describes none, or one that is not strictly increasing; says which field.
    """
    return _ADAPTER.validate_python(fields)


def sigmoid(log_odds: NDArray[np.float64]) -> Scores:
    """1 / (1 + exp(-x)) up to |x| = 20, and past it a tail that float64 can tell apart.

    A float64 sigmoid is exactly 1.0 from 37 on: 40, 100 and 10,000 would tie. With M = 20 the
    distance to the nearer end, sigmoid(-M) at M, goes on as sigmoid(-M) / (1 + g * (|x| - M)).
    The sigmoid's own slope there is sigmoid(-M) * sigmoid(M), so g = sigmoid(M) makes both value
    and slope continuous. Negative and positive sides mirror each other.

    Returns:
        In 0-1, of the same shape; NaN for NaN.
    """
    size = np.abs(log_odds)
    small = np.exp(-np.minimum(size, TAIL_FROM))  # neither overflows nor underflows
    exact = np.where(log_odds >= 0, 1.0, small) / (1.0 + small)
    excess = size - TAIL_FROM
    if not (excess > 0).any():  # nearly always
        return exact
    shrunk = _TAIL_END / (1.0 + _TAIL_START * np.maximum(excess, 0.0))
    # Added to what the sigmoid is at M, not taken from 1: rounding cannot make a step down at M.
    tail = np.where(log_odds >= 0, _TAIL_START + (_TAIL_END - shrunk), shrunk)
    return np.where(excess > 0, tail, exact)


_TAIL_END, _TAIL_START = (float(x) for x in sigmoid(np.array([-TAIL_FROM, TAIL_FROM])))


def to_scores(logits: Logits, head: Head, calibration: ScoreCalibration) -> Scores:
    """Calibrated probability of relevance.

    Args:
        logits: (n, k) float32 as the model gives them.
        head: What the k outputs mean.
        calibration: Fitted map from margin to log-odds.

    Returns:
        (n,) float64 in 0-1; NaN where a logit is not finite, which no caller may pass on.
    """
    return sigmoid(calibration.to_log_odds(margin(logits, head)))
