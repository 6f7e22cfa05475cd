"""Whether scores miss the labels by more than chance would: a test of a score map's shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from model_export.metrics import bin_shares

DRAWS = 1000
LEVEL = 0.95


def chance_calibration_error(scores: ArrayLike, seed: int = 0) -> float:
    """The calibration error that scores which are exactly right would exceed one time in twenty.

    Even such scores are not met by so many pairs in ten bins. Labels are drawn as the scores say,
    pair by pair: where the pairs of a query share their fate, chance alone errs by more than this.

    Args:
        scores: (n,) in 0-1.
        seed: Of the draws.

    Returns:
        The quantile `LEVEL` of `expected_calibration_error` over `DRAWS` sets of labels.

    Source: consistency resampling, Broecker and Smith 2007, "Increasing the reliability of
    reliability diagrams".
    """
    p = np.asarray(scores, dtype=np.float64)
    # What a bin's labels are off by is a sum over a tenth of the pairs: as good as normal.
    deviations = np.sqrt((p * (1 - p)) @ bin_shares(p) ** 2)
    gaps = np.random.default_rng(seed).normal(0, deviations, (DRAWS, len(deviations)))
    return float(np.quantile(np.abs(gaps).sum(axis=1) / len(p), LEVEL))
