"""Quality of scores against human labels: their order, and whether they mean what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray


def average_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks 1..n of `values`, equal values sharing the mean of their ranks."""
    array = np.asarray(values, dtype=np.float64)
    _, inverse, counts = np.unique(array, return_inverse=True, return_counts=True)
    last_rank = np.cumsum(counts)
    mean_rank = last_rank - (counts - 1) / 2
    return np.asarray(mean_rank[inverse], dtype=np.float64)


def auc(labels: ArrayLike, scores: ArrayLike) -> float:
    """Area under the ROC curve: P(a relevant pair scores above an irrelevant one), ties half.

    Args:
        labels: (n,) relevance; above 0.5 counts as relevant.
        scores: (n,) in any monotone scale.

    Returns:
        A number in 0-1; NaN when one of the two classes is absent.

    Source: the Mann-Whitney U statistic.
    """
    positive = np.asarray(labels, dtype=np.float64) > 0.5
    n_positive = int(positive.sum())
    n_negative = positive.size - n_positive
    if n_positive == 0 or n_negative == 0:
        return float("nan")
    rank_sum = float(average_ranks(scores)[positive].sum())
    return (rank_sum - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative)


def rank_correlation(left: ArrayLike, right: ArrayLike) -> float:
    """Spearman's rank correlation in -1..1; NaN when one side is constant."""
    a, b = average_ranks(left), average_ranks(right)
    a, b = a - a.mean(), b - b.mean()
    norm = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / norm) if norm > 0 else float("nan")


def ndcg_at_k(groups: Sequence[str], gains: ArrayLike, scores: ArrayLike, k: int = 10) -> float:
    """Mean normalized discounted cumulative gain over the groups that can be ranked.

    Groups (queries) whose gains are all equal say nothing about order and are left out.
    Pairs with equal scores share the mean gain of their places, so that the order of the file
    cannot flatter a constant scorer.

    Args:
        groups: (n,) query of each pair.
        gains: (n,) grade or label; enters as 2**gain - 1.
        scores: (n,) model scores.
        k: Places that count.

    Returns:
        A number in 0-1; NaN when no group can be ranked.

    Source: Burges et al. 2005 (2**gain - 1 over log2 of the place); ties as in McSherry and
    Najork 2008.
    """
    gain_array = np.exp2(np.asarray(gains, dtype=np.float64)) - 1
    score_array = np.asarray(scores, dtype=np.float64)
    members: dict[str, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    values = []
    for indices in members.values():
        group_gains, group_scores = gain_array[indices], score_array[indices]
        if group_gains.min() == group_gains.max():
            continue
        discounts = np.zeros(len(indices))
        places = np.arange(min(k, len(indices)))
        discounts[places] = 1 / np.log2(places + 2)
        ideal = float((np.sort(group_gains)[::-1] * discounts).sum())
        order = np.argsort(-group_scores, kind="stable")
        _, tie, counts = np.unique(-group_scores[order], return_inverse=True, return_counts=True)
        tied_gain = np.bincount(tie, weights=group_gains[order]) / counts
        values.append(float((tied_gain[tie] * discounts).sum()) / ideal)
    return float(np.mean(values)) if values else float("nan")


def pair_log_losses(labels: ArrayLike, scores: ArrayLike) -> NDArray[np.float64]:
    """(n,) negative log-likelihood (nats) of each label under its score in 0-1.

    A soft label is the probability that the pair is relevant.
    """
    y = np.asarray(labels, dtype=np.float64)
    p = np.clip(np.asarray(scores, dtype=np.float64), 1e-12, 1 - 1e-12)
    return np.asarray(-(y * np.log(p) + (1 - y) * np.log1p(-p)))


def log_loss(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean negative log-likelihood of the labels (nats) under scores in 0-1."""
    return float(pair_log_losses(labels, scores).mean())


def brier(labels: ArrayLike, scores: ArrayLike) -> float:
    """Mean squared difference of label and score, both (n,) in 0-1.

    Source: Brier 1950, for two outcomes of which one is counted.
    """
    y, p = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    return float(((p - y) ** 2).mean())


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One point of a reliability diagram: neighbours by score, and how relevant they are.

    Attributes:
        mean_score: What the scores promise.
        observed_share: Mean label: what was found.
        count: Pairs in the bin.
    """

    mean_score: float
    observed_share: float
    count: int


def reliability_bins(
    labels: ArrayLike, scores: ArrayLike, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """Bins of (nearly) equally many pairs by rising score; fewer where there are fewer pairs.

    Pairs with equal scores share their mean label, so that the order of the file says nothing.

    Args:
        labels: (n,) relevance in 0-1.
        scores: (n,) in 0-1.
        n_bins: Most bins.
    """
    p = np.asarray(scores, dtype=np.float64)
    _, tie, counts = np.unique(p, return_inverse=True, return_counts=True)
    y = (np.bincount(tie, weights=np.asarray(labels, dtype=np.float64)) / counts)[tie]
    order = np.argsort(p, kind="stable")
    return tuple(
        ReliabilityBin(float(p[part].mean()), float(y[part].mean()), len(part))
        for part in np.array_split(order, min(n_bins, len(order)))
    )


def expected_calibration_error(labels: ArrayLike, scores: ArrayLike, n_bins: int = 10) -> float:
    """Mean |observed share - mean score| over `reliability_bins`, weighted by their size."""
    bins = reliability_bins(labels, scores, n_bins)
    gaps = [abs(part.observed_share - part.mean_score) * part.count for part in bins]
    return sum(gaps) / sum(part.count for part in bins)
