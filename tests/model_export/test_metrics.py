from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.metrics import (
    auc,
    average_ranks,
    expected_calibration_error,
    log_loss,
    ndcg_at_k,
    rank_correlation,
)

labelled = st.lists(st.tuples(st.booleans(), st.integers(0, 5)), min_size=2, max_size=30)


@given(labelled)
def test_auc_is_the_share_of_pairs_in_the_right_order_and_ties_count_half(
    rows: list[tuple[bool, int]],
) -> None:
    relevant = [score for is_relevant, score in rows if is_relevant]
    others = [score for is_relevant, score in rows if not is_relevant]
    value = auc([r for r, _ in rows], [s for _, s in rows])
    if not relevant or not others:
        assert math.isnan(value)
        return
    wins = sum((a > b) + (a == b) / 2 for a in relevant for b in others)
    assert value == pytest.approx(wins / (len(relevant) * len(others)))


def test_equal_values_share_their_mean_rank() -> None:
    assert average_ranks([10, 30, 20, 20]).tolist() == [1, 4, 2.5, 2.5]


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=20, unique=True))
def test_rank_correlation_sees_order_and_nothing_else(values: list[int]) -> None:
    array = np.array(values)
    assert rank_correlation(array, np.exp(array / 10)) == pytest.approx(1.0)
    assert rank_correlation(array, -array) == pytest.approx(-1.0)


def test_ndcg_of_a_known_ranking() -> None:
    gains, scores = [3.0, 0.0, 1.0], [0.1, 0.9, 0.5]
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


def test_queries_that_cannot_be_ranked_are_left_out() -> None:
    groups, gains, scores = ["a", "a", "b", "b"], [1, 1, 1, 0], [0.1, 0.9, 0.9, 0.1]
    assert ndcg_at_k(groups, gains, scores) == 1.0
    assert math.isnan(ndcg_at_k(["a", "a"], [1, 1], [0.1, 0.9]))


def test_log_loss_and_calibration_error_of_known_scores() -> None:
    assert log_loss([1, 0], [0.8, 0.4]) == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    labels, scores = [0, 1] * 50, [0.5] * 100
    assert expected_calibration_error(labels, scores, n_bins=1) == pytest.approx(0.0)
    assert expected_calibration_error([1] * 100, [0.7] * 100) == pytest.approx(0.3)
