"""How well each query's ads are ordered; equal scores never profit from the order of the file.

All of these are 1 for a perfect order, and are defined for one query. `by_query` applies them to
all queries of a file; a mean over queries is the figure that people know.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def by_query(
    figure: Callable[[Floats, Floats], float],
    groups: Sequence[str] | NDArray[np.int64],
    judgements: ArrayLike,
    scores: ArrayLike,
) -> Floats:
    """A figure of each query, in the order in which the queries first come.

    Args:
        figure: Of the judgements and the scores of one query's pairs, (m,) each.
        groups: (n,) query of each pair.
        judgements: (n,) gain or relevance of each pair.
        scores: (n,) model scores.

    Returns:
        (q,) figures; NaN where a query does not allow one.
    """
    judgement_array = np.asarray(judgements, dtype=np.float64)
    score_array = np.asarray(scores, dtype=np.float64)
    members: dict[object, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    return np.array([figure(judgement_array[m], score_array[m]) for m in members.values()])


def ndcg(gains: Floats, scores: Floats, k: int = 10) -> float:
    """Normalized discounted cumulative gain of one query's first k places.

    Args:
        gains: (m,) of each pair, 0 or more, see `Grade.gain`.
        scores: (m,) model scores. Pairs with equal scores share the mean gain of their places.
        k: Places that count.

    Returns:
        A number in 0-1; NaN when all gains are equal, which says nothing about order.

    Source: Burges et al. 2005 (gains over log2 of the place + 1); ties as in McSherry and Najork
    2008.
    """
    if gains.min() == gains.max():
        return float("nan")
    places = np.arange(min(k, len(gains)))
    discounts = np.zeros(len(gains))
    discounts[places] = 1 / np.log2(places + 2)
    ideal = float((np.sort(gains)[::-1] * discounts).sum())
    order = np.argsort(-scores, kind="stable")
    _, tie, counts = np.unique(-scores[order], return_inverse=True, return_counts=True)
    tied_gain = np.bincount(tie, weights=gains[order]) / counts
    # Means of equal gains may round upwards.
    return min(float((tied_gain[tie] * discounts).sum()) / ideal, 1.0)


def ndcg_at_k(groups: Sequence[str], gains: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    """Mean of `ndcg` over the queries that can be ranked; NaN where none can."""
    values = by_query(lambda g, s: ndcg(g, s, k), groups, gains, scores)
    ranked = values[~np.isnan(values)]
    return float(ranked.mean()) if len(ranked) else float("nan")


def reciprocal_rank(labels: Floats, scores: Floats) -> float:
    """1 over the place of one query's first relevant pair (label above 0.5).

    Among equal scores every order is equally likely, and this is the mean over all of them: with m
    of a tie's t pairs relevant, the first is at its j-th place with probability
    C(t - j, m - 1) / C(t, m).

    Args:
        labels: (m,) relevance in 0-1.
        scores: (m,) model scores.

    Returns:
        A number in 0-1; NaN when one of the two classes is absent.

    Source: McSherry and Najork 2008, section 2.4.
    """
    relevant = labels > 0.5
    if relevant.all() or not relevant.any():
        return float("nan")
    best = scores[relevant].max()
    n_before = int((scores > best).sum())  # none of them relevant
    n_tied, n_relevant = int((scores == best).sum()), int((scores[relevant] == best).sum())
    chance, expected = n_relevant / n_tied, 0.0  # of the first relevant pair at the j-th place
    for j in range(1, n_tied - n_relevant + 2):
        expected += chance / (n_before + j)
        if n_tied > j:
            chance *= (n_tied - j - n_relevant + 1) / (n_tied - j)
    return expected


def average_precision(labels: Floats, scores: Floats) -> float:
    """Mean precision at each relevant pair (label above 0.5); equal scores are cut together.

    sum over the distinct scores, falling: (recall - recall before) * precision.

    Args:
        labels: (m,) relevance in 0-1, of one query or of a whole file.
        scores: (m,) model scores.

    Returns:
        A number in 0-1; NaN when one of the two classes is absent.

    Source: the sum without interpolation of scikit-learn's `average_precision_score`.
    """
    relevant = labels > 0.5
    if relevant.all() or not relevant.any():
        return float("nan")
    _, place = np.unique(-scores, return_inverse=True)
    hits = np.bincount(place, weights=relevant)
    precision = np.cumsum(hits) / np.cumsum(np.bincount(place))
    return float((hits * precision).sum() / hits.sum())
