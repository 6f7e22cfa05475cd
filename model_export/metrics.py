"""Quality of scores against human labels: their order, and whether they mean what they say.

Orders within a query: `ranking_metrics`.
"""

from __future__ import annotations

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


def bin_shares(scores: ArrayLike, n_bins: int = 10) -> NDArray[np.float64]:
    """How much of each pair lies in each bin of (nearly) equally many pairs by rising score.

    A pair is in one bin, unless its score is that of others and the edge of a bin falls among
    them: then all of them are in both bins in the same proportion, so that the order of the file
    says nothing.

    Args:
        scores: (n,) in 0-1.
        n_bins: Most bins; fewer come back where there are fewer pairs.

    Returns:
        (n, bins), each row with the sum 1.
    """
    p = np.asarray(scores, dtype=np.float64)
    n_bins = min(n_bins, len(p))
    _, tie, counts = np.unique(p, return_inverse=True, return_counts=True)
    sizes = [len(part) for part in np.array_split(p, n_bins)]
    bin_of_place = np.repeat(np.arange(n_bins), sizes)
    tie_of_place = np.repeat(np.arange(len(counts)), counts)
    places = np.bincount(tie_of_place * n_bins + bin_of_place, minlength=len(counts) * n_bins)
    shares = places.reshape(len(counts), n_bins) / counts[:, None]
    return np.asarray(shares[tie])


def reliability_bins(
    labels: ArrayLike, scores: ArrayLike, n_bins: int = 10
) -> tuple[ReliabilityBin, ...]:
    """The points of a reliability diagram, over the bins of `bin_shares`, by rising score.

    Args:
        labels: (n,) relevance in 0-1.
        scores: (n,) in 0-1.
        n_bins: Most bins.
    """
    y, p = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    shares = bin_shares(p, n_bins)  # (n, bins)
    counts = shares.sum(axis=0)
    return tuple(
        ReliabilityBin(float(mean_score), float(observed_share), round(float(count)))
        for mean_score, observed_share, count in zip(
            p @ shares / counts, y @ shares / counts, counts, strict=True
        )
    )


def expected_calibration_error(labels: ArrayLike, scores: ArrayLike, n_bins: int = 10) -> float:
    """Mean |observed share - mean score| over `reliability_bins`, weighted by their size."""
    bins = reliability_bins(labels, scores, n_bins)
    gaps = [abs(part.observed_share - part.mean_score) * part.count for part in bins]
    return sum(gaps) / sum(part.count for part in bins)
