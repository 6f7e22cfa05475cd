from __future__ import annotations

import math

import numpy as np
import pytest

from model_export.evaluation.bootstrap import Floats, Statistic, compare, query_resamples


def mean_statistic(values: list[float]) -> Statistic:
    array = np.array(values)
    return lambda counts: np.asarray(counts @ array / counts.sum(axis=1))


def test_a_resample_draws_as_many_queries_as_there_are() -> None:
    (counts,) = query_resamples(7, 500, seed=0, chunk_resamples=500)
    assert counts.shape == (500, 7)
    assert (counts.sum(axis=1) == 7).all()
    assert (counts == np.round(counts)).all()
    assert abs(counts.mean() - 1) < 1e-9
    # A query is left out of (1 - 1/7)^7 of the resamples.
    assert (counts == 0).mean() == pytest.approx((6 / 7) ** 7, abs=0.02)


def test_the_draws_depend_on_the_seed_and_not_on_the_chunks() -> None:
    whole = np.concatenate(list(query_resamples(5, 40, 3, 40)))
    assert (whole == np.concatenate(list(query_resamples(5, 40, 3, 7)))).all()
    assert (whole != np.concatenate(list(query_resamples(5, 40, 4, 40)))).any()


def test_the_interval_of_a_mean_is_that_of_its_standard_error() -> None:
    values = np.random.default_rng(0).normal(10, 2, size=400)
    (compared,) = compare([{"m": mean_statistic(values.tolist())}], 400, 400, 4000, seed=1)
    estimate = compared.figures["m"]
    error = values.std() / math.sqrt(400)
    assert estimate.value == pytest.approx(values.mean())
    assert estimate.low == pytest.approx(values.mean() - 1.96 * error, abs=0.1 * error)
    assert estimate.high == pytest.approx(values.mean() + 1.96 * error, abs=0.1 * error)


def test_differences_are_of_the_same_resamples() -> None:
    first = np.random.default_rng(0).normal(size=50)
    better = mean_statistic((first + 0.1).tolist())
    one, two = compare([{"m": mean_statistic(first.tolist())}, {"m": better}], 50, 50, 200, seed=0)
    assert one.differences == {}
    difference = two.differences["m"]
    assert (difference.value, difference.low, difference.high) == pytest.approx((0.1, 0.1, 0.1))
    assert two.figures["m"].high - two.figures["m"].low > 0.2, "though each alone is uncertain"


def test_a_figure_that_the_first_lacks_has_no_difference() -> None:
    one, two = mean_statistic([1.0, 2.0]), mean_statistic([2.0, 3.0])
    _, compared = compare([{"a": one}, {"a": two, "b": two}], 2, 2, 10, seed=0)
    assert set(compared.differences) == {"a"}


def test_one_query_and_no_resamples_give_no_interval() -> None:
    for n_queries, n_resamples in ((1, 100), (3, 0)):
        statistic = mean_statistic([1.0] * n_queries)
        (compared,) = compare([{"m": statistic}], n_queries, n_queries, n_resamples, seed=0)
        assert compared.figures["m"].value == 1.0
        assert math.isnan(compared.figures["m"].low)


def test_a_figure_that_many_resamples_do_not_allow_has_no_interval() -> None:
    def needs_the_first_query(counts: Floats) -> Floats:
        return np.where(counts[:, 0] > 0, 1.0, np.nan)

    (compared,) = compare([{"m": needs_the_first_query}], 5, 5, 100, seed=0)
    assert compared.figures["m"].value == 1.0
    assert math.isnan(compared.figures["m"].low)


def test_a_figure_that_the_file_does_not_allow_is_not_a_number() -> None:
    (compared,) = compare([{"m": lambda c: np.full(len(c), np.nan)}], 5, 5, 10, seed=0)
    assert math.isnan(compared.figures["m"].value)
