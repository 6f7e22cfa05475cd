from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.metrics import (
    ReliabilityBin,
    auc,
    average_ranks,
    bin_shares,
    brier,
    expected_calibration_error,
    log_loss,
    pair_log_losses,
    rank_correlation,
    reliability_bins,
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


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=15))
def test_rank_correlation_is_pearsons_of_the_ranks_with_ties_in_the_middle(
    rows: list[tuple[int, int]],
) -> None:
    def ranks(values: list[int]) -> list[float]:
        return [sum(w < v for w in values) + (values.count(v) + 1) / 2 for v in values]

    left, right = ([row[side] for row in rows] for side in (0, 1))
    value = rank_correlation(left, right)
    if len(set(left)) == 1 or len(set(right)) == 1:
        assert math.isnan(value), "a constant has no order to agree with"
    else:
        assert value == pytest.approx(np.corrcoef(ranks(left), ranks(right))[0, 1])


def test_log_loss_and_calibration_error_of_known_scores() -> None:
    assert log_loss([1, 0], [0.8, 0.4]) == pytest.approx(-(math.log(0.8) + math.log(0.6)) / 2)
    labels, scores = [0, 1] * 50, [0.5] * 100
    assert expected_calibration_error(labels, scores, n_bins=1) == pytest.approx(0.0)
    assert expected_calibration_error([1] * 100, [0.7] * 100) == pytest.approx(0.3)


def test_calibration_error_weighs_its_bins_by_their_size() -> None:
    # Three pairs in two bins: (.2, .4), whose labels are both 0, and (.9), whose label is 1.
    error = expected_calibration_error([0, 0, 1], [0.2, 0.4, 0.9], n_bins=2)
    assert error == pytest.approx(0.3 * 2 / 3 + 0.1 / 3)


def test_one_certain_mistake_costs_much_but_not_infinitely_much() -> None:
    assert 20 < log_loss([0, 1], [1.0, 1.0]) * 2 < 40
    assert log_loss([1], [0.0]) > 20


def test_a_scorer_that_always_says_the_base_rate_is_calibrated_in_any_order_of_the_file() -> None:
    assert expected_calibration_error([0, 1] * 50, [0.5] * 100) == pytest.approx(0.0)
    assert expected_calibration_error([0] * 50 + [1] * 50, [0.5] * 100) == pytest.approx(0.0)


def test_the_brier_score_is_the_mean_squared_difference_and_takes_soft_labels() -> None:
    assert brier([1, 0, 0.5], [0.8, 0.4, 0.5]) == pytest.approx((0.04 + 0.16) / 3)


def test_the_loss_of_each_pair_is_its_part_of_the_mean_and_a_soft_label_is_a_mixture() -> None:
    losses = pair_log_losses([1, 0, 0.25], [0.8, 0.4, 0.4])
    mixed = -0.25 * math.log(0.4) - 0.75 * math.log(0.6)
    assert losses.tolist() == pytest.approx([-math.log(0.8), -math.log(0.6), mixed])
    assert log_loss([1, 0, 0.25], [0.8, 0.4, 0.4]) == pytest.approx(losses.mean())


def test_reliability_bins_hold_equally_many_pairs_by_rising_score() -> None:
    bins = reliability_bins([1, 0, 1, 0, 0], [0.9, 0.1, 0.7, 0.2, 0.3], n_bins=2)
    assert [part.count for part in bins] == [3, 2]
    assert [part.mean_score for part in bins] == pytest.approx([0.2, 0.8])
    assert [part.observed_share for part in bins] == [0.0, 1.0]


def test_fewer_pairs_than_bins_make_a_bin_each() -> None:
    assert reliability_bins([1, 0], [0.9, 0.1]) == (
        ReliabilityBin(mean_score=0.1, observed_share=0.0, count=1),
        ReliabilityBin(mean_score=0.9, observed_share=1.0, count=1),
    )


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 20)), min_size=1, max_size=60))
def test_bins_lose_no_pair_and_no_label(rows: list[tuple[bool, int]]) -> None:
    labels, scores = [float(y) for y, _ in rows], [s / 20 for _, s in rows]
    bins = reliability_bins(labels, scores, n_bins=7)
    assert sum(part.count for part in bins) == len(rows)
    assert sum(part.observed_share * part.count for part in bins) == pytest.approx(sum(labels))
    assert sum(part.mean_score * part.count for part in bins) == pytest.approx(sum(scores))
    means = [part.mean_score for part in bins]
    assert means == pytest.approx(sorted(means))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=40))
def test_bins_are_equally_full_and_equal_scores_lie_in_them_in_the_same_proportion(
    scores: list[int],
) -> None:
    shares = bin_shares(scores, n_bins=7)
    assert shares.sum(axis=1) == pytest.approx(np.ones(len(scores)))
    fills = shares.sum(axis=0)
    assert fills.max() - fills.min() < 1 + 1e-9
    for score in set(scores):
        of_score = shares[[index for index, other in enumerate(scores) if other == score]]
        assert (of_score == of_score[0]).all()


@given(labelled)
def test_auc_log_loss_and_brier_score_are_scikit_learns(rows: list[tuple[bool, int]]) -> None:
    from sklearn import metrics as theirs

    labels, scores = [int(y) for y, _ in rows], [(s + 1) / 7 for _, s in rows]
    assert log_loss(labels, scores) == pytest.approx(theirs.log_loss(labels, scores, labels=[0, 1]))
    assert brier(labels, scores) == pytest.approx(
        theirs.brier_score_loss(labels, scores, labels=[0, 1])
    )
    if len(set(labels)) == 2:
        assert auc(labels, scores) == pytest.approx(theirs.roc_auc_score(labels, scores))
