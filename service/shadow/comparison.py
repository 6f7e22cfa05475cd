"""How two models differ on the ads of one request: pure figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Comparison:
    """The shadow against the model that serves.

    Attributes:
        differences: Of each ad: the shadow's score less the one that was given.
        rank_agreement: See `rank_agreement`; None where no two ads are ranked.
        same_top: The shadow's first ad is first by the given scores, or among those that tie
            there; None likewise.
        n_kept: Ads on whose eligibility both agree; 0 where nobody asked for it.
        n_gained: Ads that the shadow alone finds eligible.
        n_lost: Ads that it alone does not.
    """

    differences: tuple[float, ...]
    rank_agreement: float | None
    same_top: bool | None
    n_kept: int = 0
    n_gained: int = 0
    n_lost: int = 0


def compare(
    given: Sequence[float], shadow: Sequence[float], min_score: float | None, *, ranked: bool
) -> Comparison:
    """Hold the shadow's scores against those that were given.

    Args:
        given: (n,) scores in 0-1, n >= 1.
        shadow: (n,) of the same ads.
        min_score: From which on an ad is eligible; None where nobody asked.
        ranked: The ads compete with each other: they are of one query.
    """
    ours, theirs = np.asarray(given, np.float64), np.asarray(shadow, np.float64)
    agreement = rank_agreement(ours, theirs) if ranked else None
    same_top = bool(ours[theirs.argmax()] == ours.max()) if ranked and len(ours) > 1 else None
    kept = gained = lost = 0
    if min_score is not None:
        before, after = ours >= min_score, theirs >= min_score
        gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
        kept = len(ours) - gained - lost
    return Comparison(tuple((theirs - ours).tolist()), agreement, same_top, kept, gained, lost)


def rank_agreement(given: Scores, shadow: Scores) -> float | None:
    """Of the pairs of ads with different given scores, the share that the shadow orders alike.

    A tie of the shadow's counts half. Where nothing ties, Kendall's tau is twice this less one.
    None where no two ads have different scores.

    Source: the probability of concordance; Harrell et al., Evaluating the yield of medical tests
    (JAMA 1982).
    """
    first, second = np.triu_indices(len(given), 1)
    order = np.sign(given[first] - given[second])
    told_apart = order != 0
    if not told_apart.any():
        return None
    other = np.sign(shadow[first] - shadow[second])
    return float((1 + (order * other)[told_apart]).mean() / 2)
