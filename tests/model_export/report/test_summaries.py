from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.metrics import expected_calibration_error
from model_export.report.summaries import (
    counts_between,
    length_edges,
    points_to_show,
    reliability_points,
    spread_classes,
    wilson_interval,
)


def test_the_wilson_interval_is_the_textbooks() -> None:
    # Solved from (share - p)^2 = z^2 p (1 - p) / n for 8 of 10.
    low, high = wilson_interval(0.8, 10)
    for end in (low, high):
        assert (0.8 - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / 10)
    assert low < 0.8 < high


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_wilson_interval_has_a_width_where_all_pairs_agree(share: float) -> None:
    low, high = wilson_interval(share, 5)
    assert 0 <= low <= share <= high <= 1
    assert high - low > 0.3


scored = st.lists(
    st.tuples(st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 0.2, 0.21, 0.5, 0.77, 1.0])),
    min_size=1,
    max_size=60,
)


@given(scored)
def test_the_bins_are_those_of_the_calibration_error(pairs: list[tuple[float, float]]) -> None:
    labels, scores = zip(*pairs, strict=True)
    bins = reliability_points(labels, scores)
    assert sum(one["n_pairs"] for one in bins) == len(pairs)
    error = sum(one["n_pairs"] * abs(one["share_relevant"] - one["mean_score"]) for one in bins)
    assert error / len(pairs) == pytest.approx(expected_calibration_error(labels, scores))


def test_equal_scores_are_one_bin() -> None:
    (one,) = reliability_points([1.0] * 30 + [0.0] * 10, [0.5] * 40)
    assert one["n_pairs"] == 40
    assert one["share_relevant"] == pytest.approx(0.75)
    assert one["low"] < 0.75 < one["high"]


def test_no_value_is_lost_at_the_ends_of_a_histogram() -> None:
    assert counts_between([-1.0, 0.0, 0.5, 1.0, 2.0], [0.0, 0.5, 1.0]) == [2, 3]


@pytest.mark.parametrize("limit", [1, 8, 64, 128, 500, 512])
def test_every_length_has_a_bin_of_whole_tokens(limit: int) -> None:
    edges = length_edges(limit)
    counts = counts_between(np.arange(1, limit + 1), edges)
    assert sum(counts) == limit
    assert len(counts) <= 33
    assert len(set(counts[:-1])) <= 1  # equally wide


def test_a_spread_of_zero_is_a_class_of_its_own() -> None:
    classes = spread_classes([0.0, 0.0, 1e-9, 1e-6, 0.02, 0.5])
    counts = {one["class"]: one["n_pairs"] for one in classes if one["n_pairs"]}
    assert counts == {
        "exactly 0": 2,
        "< 1e-06": 1,
        "1e-06 to 1e-05": 1,
        "0.01 to 0.1": 1,
        "≥ 0.1": 1,
    }


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_every_spread_has_one_class(spread: list[float]) -> None:
    assert sum(one["n_pairs"] for one in spread_classes(spread)) == len(spread)


def test_few_points_are_all_shown_worst_first() -> None:
    change = np.array([0.1, -0.3, 0.2])
    assert points_to_show(np.zeros(3), change).tolist() == [1, 2, 0]


def test_of_many_points_the_worst_stay_and_the_rest_covers_all_scores() -> None:
    n = 5_000
    rng = np.random.default_rng(0)
    reference, change = rng.uniform(size=n), rng.normal(size=n)
    shown = points_to_show(reference, change, limit=400)
    assert len(shown) == len(set(shown.tolist())) == 400
    worst = np.argsort(-np.abs(change))[:100]
    assert set(worst.tolist()) <= set(shown.tolist())
    assert counts_between(reference[shown], np.linspace(0, 1, 11)) == pytest.approx(
        [40] * 10, abs=15
    )
    assert (np.diff(np.abs(change[shown])) <= 0).all()
