from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.ranking_metrics import (
    average_precision,
    by_query,
    ndcg,
    ndcg_at_k,
    reciprocal_rank,
)

judged = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=6)


def test_ndcg_of_a_known_ranking() -> None:
    gains, scores = [7.0, 0.0, 1.0], [0.1, 0.9, 0.5]
    discounted = 0 / math.log2(2) + 1 / math.log2(3) + 7 / math.log2(4)
    ideal = 7 / math.log2(2) + 1 / math.log2(3)
    assert ndcg_at_k(["q"] * 3, gains, scores) == pytest.approx(discounted / ideal)


def test_ndcg_counts_no_places_after_the_kth() -> None:
    assert ndcg_at_k(["q"] * 3, [0, 0, 1], [3, 2, 1], k=2) == 0.0


def test_a_constant_scorer_gains_nothing_from_the_order_of_the_file() -> None:
    best_first = ndcg_at_k(["q"] * 4, [3, 2, 1, 0], [0.5] * 4)
    worst_first = ndcg_at_k(["q"] * 4, [0, 1, 2, 3], [0.5] * 4)
    assert best_first == pytest.approx(worst_first)
    assert best_first < 1


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), min_size=2, max_size=5),
    st.integers(1, 6),
)
def test_ndcg_is_the_mean_over_all_orders_that_the_scores_allow(
    rows: list[tuple[int, int]], k: int
) -> None:
    def discounted(gains: list[int]) -> float:
        return sum(g / math.log2(place + 2) for place, g in enumerate(gains[:k]))

    gains, scores = [gain for gain, _ in rows], [score for _, score in rows]
    value = ndcg_at_k(["q"] * len(rows), gains, scores, k)
    if len(set(gains)) == 1:
        assert math.isnan(value)
        return
    falling = sorted(scores, reverse=True)
    allowed = [
        discounted([gain for gain, _ in order])
        for order in itertools.permutations(rows)
        if [score for _, score in order] == falling
    ]
    ideal = discounted(sorted(gains, reverse=True))
    assert value == pytest.approx(sum(allowed) / len(allowed) / ideal)


def test_queries_that_cannot_be_ranked_are_left_out() -> None:
    groups, gains, scores = ["a", "a", "b", "b"], [1, 1, 1, 0], [0.1, 0.9, 0.9, 0.1]
    assert ndcg_at_k(groups, gains, scores) == 1.0
    assert math.isnan(ndcg_at_k(["a", "a"], [1, 1], [0.1, 0.9]))


def arrays(rows: list[tuple[bool, int]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array([float(y) for y, _ in rows]), np.array([float(s) for _, s in rows])


@given(judged)
def test_the_reciprocal_rank_is_the_mean_over_all_orders_that_the_scores_allow(
    rows: list[tuple[bool, int]],
) -> None:
    value = reciprocal_rank(*arrays(rows))
    if len({label for label, _ in rows}) == 1:
        assert math.isnan(value)
        return
    falling = sorted((score for _, score in rows), reverse=True)
    firsts = [
        1 / (1 + [label for label, _ in order].index(True))
        for order in itertools.permutations(rows)
        if [score for _, score in order] == falling
    ]
    assert value == pytest.approx(sum(firsts) / len(firsts))


@given(judged)
def test_average_precision_is_scikit_learns_with_ties(rows: list[tuple[bool, int]]) -> None:
    from sklearn import metrics as theirs

    labels, scores = arrays(rows)
    value = average_precision(labels, scores)
    if len(set(labels)) == 1:
        assert math.isnan(value)
        return
    assert value == pytest.approx(theirs.average_precision_score(labels, scores))


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=8),
    st.integers(1, 9),
)
def test_ndcg_is_scikit_learns_with_ties(rows: list[tuple[int, int]], k: int) -> None:
    from sklearn import metrics as theirs

    gains, scores = (np.array([float(row[side]) for row in rows]) for side in (0, 1))
    if len(set(gains)) > 1:
        expected = theirs.ndcg_score([gains], [scores], k=k)
        assert ndcg(gains, scores, k) == pytest.approx(expected)


def test_figures_of_queries_come_in_the_order_of_the_queries() -> None:
    groups, labels, scores = ["b", "a", "b", "a", "c"], [1, 0, 0, 1, 1], [0.9, 0.8, 0.1, 0.2, 0.5]
    ranks = by_query(reciprocal_rank, groups, labels, scores)
    assert ranks[:2].tolist() == [1.0, 0.5]
    assert math.isnan(ranks[2]), "one pair has no order"
