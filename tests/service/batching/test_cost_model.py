from __future__ import annotations

import math
import random

import pytest

from service.batching.cost_model import BatchCost, CostModel

TRUE = BatchCost(per_batch_s=8e-4, per_token_s=9e-5, per_square_s=2e-7)
SHAPES = [(n, length) for n in (1, 3, 8) for length in (10, 30, 64)]


def learn(model: CostModel, n_batches: int, cost: BatchCost = TRUE, noise: float = 0.05) -> None:
    rng = random.Random(1)  # noqa: S311  # the same batches in every run
    for _ in range(n_batches):
        n, length = rng.choice(SHAPES)
        seconds = cost.batch_s(n, float(length)) * math.exp(rng.gauss(0, noise))
        model.observe(n, n * length, seconds)


def worst_error(model: CostModel, cost: BatchCost = TRUE) -> float:
    ratios = (model.cost.batch_s(n, float(t)) / cost.batch_s(n, float(t)) for n, t in SHAPES)
    return max(abs(math.log(ratio)) for ratio in ratios)


def test_the_first_batch_sets_the_scale() -> None:
    model = CostModel()
    model.observe(4, 80, 3.0)
    assert model.cost.batch_s(4, 20.0) == pytest.approx(3.0)


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_the_cost_of_every_shape_is_learned_on_slow_and_fast_machines(scale: float) -> None:
    true = BatchCost(scale * TRUE.per_batch_s, scale * TRUE.per_token_s, scale * TRUE.per_square_s)
    model = CostModel()
    learn(model, 200, true)
    assert worst_error(model, true) < 0.1


def test_a_stalled_batch_hardly_moves_the_prediction() -> None:
    model = CostModel()
    learn(model, 200)
    before_s = model.cost.batch_s(8, 30.0)
    model.observe(8, 240, 50 * before_s)
    assert model.cost.batch_s(8, 30.0) == pytest.approx(before_s, rel=0.05)


def test_one_outlier_in_ten_does_not_spoil_the_model() -> None:
    model = CostModel()
    rng = random.Random(2)  # noqa: S311  # the same batches in every run
    for i in range(400):
        n, length = rng.choice(SHAPES)
        stall = 20.0 if i % 10 == 9 else 1.0
        model.observe(n, n * length, stall * TRUE.batch_s(n, float(length)))
    assert worst_error(model) < 0.2


def test_a_machine_that_has_changed_is_noticed_within_a_few_batches() -> None:
    model = CostModel()
    learn(model, 200)
    slow = BatchCost(5 * TRUE.per_batch_s, 5 * TRUE.per_token_s, 5 * TRUE.per_square_s)
    learn(model, 20, slow)
    assert worst_error(model, slow) < 0.2


def test_batches_of_one_shape_teach_nothing_wrong_about_others() -> None:
    model = CostModel()
    learn(model, 100)
    for _ in range(2000):
        model.observe(1, 30, TRUE.batch_s(1, 30.0))
    assert worst_error(model) < 0.35


def test_costs_stay_positive_and_finite_whatever_comes() -> None:
    model = CostModel()
    for seconds in (0.0, -1.0, math.inf, math.nan, 1e-9, 1e6, 1e-9, 1e6, 1e-3) * 20:
        model.observe(3, 90, seconds)
    cost = model.cost
    for value in (cost.per_batch_s, cost.per_token_s, cost.per_square_s):
        assert 0 < value < math.inf


def test_doubt_makes_every_prediction_a_little_smaller() -> None:
    model = CostModel()
    learn(model, 50)
    before = model.cost
    model.doubt()
    assert model.cost.batch_s(1, 10.0) == pytest.approx(0.95 * before.batch_s(1, 10.0))
    assert model.cost.batch_s(8, 64.0) == pytest.approx(0.95 * before.batch_s(8, 64.0))
