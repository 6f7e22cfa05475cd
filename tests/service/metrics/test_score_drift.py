from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from service.metrics.score_drift import (
    HALF_LIFE_S,
    MIN_SCORES,
    SMOOTHING,
    ScoreDrift,
    population_stability_index,
)
from tests.fakes import FakeClock

weights = st.lists(st.floats(0, 1e9), min_size=10, max_size=10).filter(lambda bins: sum(bins) > 1)


class Watched:
    """A drift over counts that the test sets, and its two series."""

    def __init__(self) -> None:
        self.counts = [0] * 10
        self.clock = FakeClock()
        self.drift = ScoreDrift(lambda: self.counts)
        self.registry = CollectorRegistry()
        self.registry.register(self.drift)

    def value(self, name: str = "adrel_score_drift") -> float:
        value = self.registry.get_sample_value(name)
        assert value is not None
        return value

    @property
    def n_scores(self) -> float:
        return self.value("adrel_score_drift_scores")


@given(weights, weights)
def test_the_index_is_never_negative_symmetric_finite_and_bounded(
    live: list[float], reference: list[float]
) -> None:
    index = population_stability_index(live, reference)
    assert index >= 0
    assert index == pytest.approx(population_stability_index(reference, live), abs=1e-12)
    assert index < 2 * math.log((1 + SMOOTHING) / SMOOTHING)


@given(weights, st.floats(1e-3, 1e3))
def test_the_index_of_equal_shares_is_zero_whatever_the_counts(
    bins: list[float], factor: float
) -> None:
    scaled = [weight * factor for weight in bins]
    assert population_stability_index(scaled, bins) == pytest.approx(0, abs=1e-9)


@given(weights, weights, st.permutations(range(10)))
def test_the_order_of_the_bins_does_not_matter(
    live: list[float], reference: list[float], order: list[int]
) -> None:
    shuffled = population_stability_index([live[i] for i in order], [reference[i] for i in order])
    assert shuffled == pytest.approx(population_stability_index(live, reference), abs=1e-12)


@given(weights, weights, st.floats(0.01, 0.99))
def test_a_mixture_with_the_reference_drifts_less(
    live: list[float], reference: list[float], share: float
) -> None:
    p = [weight / sum(live) for weight in live]
    q = [weight / sum(reference) for weight in reference]
    mixed = [share * a + (1 - share) * b for a, b in zip(p, q, strict=True)]
    assert population_stability_index(mixed, q) <= population_stability_index(p, q) + 1e-12


def test_the_index_is_the_sum_that_the_textbook_writes() -> None:
    p, q = [(share + SMOOTHING) / (1 + 2 * SMOOTHING) for share in (0.6, 0.5)]
    expected = (p - q) * math.log(p / q) + (q - p) * math.log((1 - p) / (1 - q))
    assert population_stability_index([60, 40], [0.5, 0.5]) == pytest.approx(expected)


def test_before_there_is_a_reference_or_enough_scores_there_is_no_drift() -> None:
    watched = Watched()
    assert (watched.value(), watched.n_scores) == (0, 0)
    watched.drift.compare_with([0.1] * 10, watched.clock.now_s)
    watched.counts[3] = MIN_SCORES - 1
    assert (watched.value(), watched.n_scores) == (0, MIN_SCORES - 1)
    watched.counts[3] = MIN_SCORES
    assert watched.value() > 1


def test_a_reference_without_pairs_is_no_reference() -> None:
    watched = Watched()
    watched.drift.compare_with([0.0] * 10, watched.clock.now_s)
    watched.counts[3] = 10 * MIN_SCORES
    assert watched.value() == 0


def test_a_score_counts_half_after_the_half_life_however_often_somebody_looks() -> None:
    for n_looks in (1, 10):
        watched = Watched()
        watched.drift.compare_with([0.1] * 10, watched.clock.now_s)
        watched.counts[0] = 1000
        assert watched.n_scores == 1000
        for _ in range(n_looks):
            watched.clock.advance(HALF_LIFE_S / n_looks)
            watched.value()
        assert watched.n_scores == pytest.approx(500)


def test_new_scores_outweigh_old_ones() -> None:
    watched = Watched()
    watched.drift.compare_with([1.0] + [0.0] * 9, watched.clock.now_s)
    watched.counts[9] = 1000
    assert watched.value() > 10
    watched.clock.advance(20 * HALF_LIFE_S)
    watched.counts[0] = 1000
    assert watched.value() < 0.01


def test_another_model_starts_anew() -> None:
    watched = Watched()
    watched.drift.compare_with([0.1] * 10, watched.clock.now_s)
    watched.counts[0] = 1000
    assert watched.value() > 1
    watched.drift.compare_with([0.1] * 10, watched.clock.now_s)
    assert (watched.value(), watched.n_scores) == (0, 0)
