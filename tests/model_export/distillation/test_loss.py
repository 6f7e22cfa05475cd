from __future__ import annotations

import math

import pytest
import torch

from model_export.distillation.loss import distillation_loss

NAN = math.nan


def loss(logits: list[float], targets: list[tuple[float, float]], weight: float = 0.3) -> float:
    outputs = {"logits": torch.tensor(logits)[:, None]}
    return distillation_loss(weight)(outputs, torch.tensor(targets)).item()


def cross_entropy(logit: float, label: float) -> float:
    p = 1 / (1 + math.exp(-logit))
    return -label * math.log(p) - (1 - label) * math.log(1 - p)


def test_the_loss_is_the_squared_difference_plus_the_weighted_cross_entropy() -> None:
    expected = ((2 - 1.5) ** 2 + 0.3 * cross_entropy(2, 1) + (-1 - 0) ** 2) / 2
    assert loss([2.0, -1.0], [(1.5, 1.0), (0.0, NAN)]) == pytest.approx(expected)


def test_a_soft_label_is_a_mixture_and_the_weight_may_be_nothing() -> None:
    assert loss([0.5], [(0.5, 0.25)], 1.0) == pytest.approx(cross_entropy(0.5, 0.25))
    assert loss([0.5], [(0.5, 0.25)], 0.0) == 0.0


def test_what_nobody_knows_costs_nothing_and_moves_nothing() -> None:
    logits = torch.tensor([[3.0]], requires_grad=True)
    value = distillation_loss(0.3)({"logits": logits}, torch.tensor([[NAN, NAN]]))
    value.backward()
    assert value.item() == 0.0
    assert logits.grad is not None
    assert float(logits.grad) == 0.0
