"""The figures of `evaluate`, each as a statistic that the bootstrap can draw again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from model_export.evaluation.bootstrap import Floats, Statistic
from model_export.metrics import bin_shares, pair_log_losses
from model_export.pairs import LabelledPair
from model_export.ranking_metrics import average_precision, by_query, ndcg, reciprocal_rank

ECE_BINS = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """What a figure is called and what it means.

    Attributes:
        name: In JSON.
        title: In the table; of NDCG without its places.
        kind: `ranking` looks at the order alone; `probability` asks what the scores mean, and is
            only there for scores that claim to be probabilities.
        meaning: One line for people.
    """

    name: str
    title: str
    kind: Literal["ranking", "probability"]
    meaning: str


FIGURES = (
    Figure("auc", "AUC", "ranking", "P(a relevant pair above another), all pairs of the file"),
    Figure(
        "ndcg",
        "NDCG",
        "ranking",
        "gain (2^grade - 1) / (2^best - 1), mean over queries whose gains differ",
    ),
    Figure("mrr", "MRR", "ranking", "1 / place of the first relevant ad, mean over queries"),
    Figure("map", "MAP", "ranking", "average precision of a query, mean over queries"),
    Figure("average_precision", "AP", "ranking", "average precision, all pairs of the file"),
    Figure(
        "calibration_error",
        "ECE",
        "probability",
        f"|mean label - mean score| over {ECE_BINS} equally full bins by score",
    ),
    Figure("brier", "Brier", "probability", "mean squared difference of label and score"),
    Figure("log_loss", "log loss", "probability", "mean -ln of what the label was given"),
)


class Truth:
    """What people said about the pairs of a file, as arrays.

    Attributes:
        labels: (n,) relevance in 0-1; above 0.5 is relevant.
        gains: (n,) what a pair adds to a ranking.
        query_of_pair: (n,) numbers from 0 on, in the order in which the queries first come.
        n_queries: How many there are.
    """

    def __init__(self, labels: Floats, gains: Floats, queries: Sequence[object]) -> None:
        """Number the queries."""
        number_of: dict[object, int] = {}
        self.labels = labels
        self.gains = gains
        self.query_of_pair: NDArray[np.int64] = np.array(
            [number_of.setdefault(query, len(number_of)) for query in queries], dtype=np.int64
        )
        self.n_queries = len(number_of)

    @classmethod
    def of(cls, pairs: Sequence[LabelledPair]) -> Truth:
        """The truth of pairs as they were read."""
        return cls(
            np.array([pair.label for pair in pairs], dtype=np.float64),
            np.array([pair.gain for pair in pairs], dtype=np.float64),
            [pair.query for pair in pairs],
        )

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.labels)

    @property
    def relevant(self) -> NDArray[np.bool_]:
        """(n,) whether each pair is relevant."""
        return self.labels > 0.5

    def part(self, chosen: NDArray[np.bool_]) -> Truth:
        """The pairs for which `chosen` (n,) is true."""
        return Truth(self.labels[chosen], self.gains[chosen], self.query_of_pair[chosen].tolist())


def statistics_of(
    truth: Truth, scores: Floats, places: int, *, are_probabilities: bool
) -> dict[str, Statistic]:
    """Every figure of `FIGURES` that the scores can have, by name.

    Args:
        truth: n pairs.
        scores: (n,) of one model.
        places: k of NDCG@k.
        are_probabilities: Whether to judge what the scores mean.
    """
    made: dict[str, Statistic] = {"auc": auc_statistic(truth, scores)}
    groups = truth.query_of_pair
    made["ndcg"] = _mean_over_queries(
        by_query(lambda gains, s: ndcg(gains, s, places), groups, truth.gains, scores)
    )
    made["mrr"] = _mean_over_queries(by_query(reciprocal_rank, groups, truth.labels, scores))
    made["map"] = _mean_over_queries(by_query(average_precision, groups, truth.labels, scores))
    made["average_precision"] = _average_precision(truth, scores)
    if are_probabilities:
        made["calibration_error"] = ece_statistic(truth, scores)
        made["brier"] = _mean_over_pairs(truth, (scores - truth.labels) ** 2)
        made["log_loss"] = _mean_over_pairs(truth, pair_log_losses(truth.labels, scores))
    return made


def auc_statistic(truth: Truth, scores: Floats) -> Statistic:
    """Area under the ROC curve over all pairs, ties half, see `metrics.auc`."""
    by_score = _ByScore(truth, scores)

    def statistic(counts: Floats) -> Floats:
        relevant, others = by_score.weights(counts)  # (r, s) each
        others_below = np.cumsum(others, axis=1) - others
        wins = (relevant * (others_below + others / 2)).sum(axis=1)
        return _ratio(wins, relevant.sum(axis=1) * others.sum(axis=1))

    return statistic


def ece_statistic(truth: Truth, scores: Floats) -> Statistic:
    """Expected calibration error, see `metrics.expected_calibration_error`.

    The bins are those of the whole file in every resample. Chance adds to the gaps of a resample,
    so the interval leans upwards and need not hold the figure itself.
    """
    shares = bin_shares(scores, ECE_BINS)
    gaps = np.zeros((truth.n_queries, shares.shape[1]))
    np.add.at(gaps, truth.query_of_pair, shares * (truth.labels - scores)[:, None])
    n_pairs = np.bincount(truth.query_of_pair, minlength=truth.n_queries).astype(np.float64)
    return lambda counts: _ratio(np.abs(counts @ gaps).sum(axis=1), counts @ n_pairs)


def _average_precision(truth: Truth, scores: Floats) -> Statistic:
    by_score = _ByScore(truth, -scores)  # best first

    def statistic(counts: Floats) -> Floats:
        relevant, others = by_score.weights(counts)
        hits = np.cumsum(relevant, axis=1)
        n_cut = hits + np.cumsum(others, axis=1)
        precision = np.divide(hits, n_cut, out=np.zeros_like(hits), where=n_cut > 0)
        total = relevant.sum(axis=1)
        total[others.sum(axis=1) == 0] = 0  # no order to speak of
        return _ratio((relevant * precision).sum(axis=1), total)

    return statistic


class _ByScore:
    """Pairs by rising score, those with equal scores together."""

    def __init__(self, truth: Truth, scores: Floats) -> None:
        order = np.argsort(scores, kind="stable")
        self._query_of_pair = truth.query_of_pair[order]
        self._relevant = truth.relevant[order]
        self._starts = np.flatnonzero(np.diff(scores[order], prepend=np.nan) != 0)

    def weights(self, counts: Floats) -> tuple[Floats, Floats]:
        """(r, s) how many relevant and other pairs each of s scores has in each of r files."""
        weights = counts[:, self._query_of_pair]  # (r, n)
        all_pairs = np.add.reduceat(weights, self._starts, axis=1)
        relevant = np.add.reduceat(weights * self._relevant, self._starts, axis=1)
        return relevant, all_pairs - relevant


def _mean_over_queries(values: Floats) -> Statistic:
    """Of (q,) figures, over those that are not NaN."""
    defined = ~np.isnan(values)
    known = np.where(defined, values, 0.0)
    return lambda counts: _ratio(counts @ known, counts @ defined)


def _mean_over_pairs(truth: Truth, values: Floats) -> Statistic:
    sums = np.bincount(truth.query_of_pair, weights=values, minlength=truth.n_queries)
    n_pairs = np.bincount(truth.query_of_pair, minlength=truth.n_queries).astype(np.float64)
    return lambda counts: _ratio(counts @ sums, counts @ n_pairs)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """NaN where there is nothing to divide by."""
    return np.divide(
        numerator, denominator, out=np.full_like(numerator, np.nan), where=denominator > 0
    )
