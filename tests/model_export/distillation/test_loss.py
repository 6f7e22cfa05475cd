from __future__ import annotations

import math

import pytest
import torch

from model_export.distillation.loss import distillation_loss, hidden_loss

NAN = math.nan


def loss(logits: list[float], targets: list[tuple[float, float]], weight: float = 0.3) -> float:
    margins, labels = torch.tensor(targets).unbind(1)
    return distillation_loss(torch.tensor(logits)[:, None], margins, labels, weight).item()


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
    unknown = torch.tensor([NAN])
    value = distillation_loss(logits, unknown, unknown, 0.3)
    value.backward()
    assert value.item() == 0.0
    assert logits.grad is not None
    assert float(logits.grad) == 0.0


STATES = [torch.full((1, 3, 2), float(number)) for number in range(7)]  # of a teacher of six layers
ALL = torch.ones(1, 3)


@pytest.mark.parametrize(
    ("n_layers", "partners"), [(1, [6]), (2, [3, 6]), (3, [2, 4, 6]), (4, [2, 3, 5, 6])]
)
def test_each_layer_has_its_partner_and_the_last_the_last(
    n_layers: int, partners: list[int]
) -> None:
    own = [STATES[number] for number in (0, *partners)]
    assert len(own) == n_layers + 1
    assert hidden_loss(own, STATES, ALL) == 0
    own[1] = torch.zeros(1, 3, 2)  # as far from its partner as that is from nothing
    assert hidden_loss(own, STATES, ALL).item() == pytest.approx(1 / n_layers)


def test_padding_and_the_embeddings_do_not_count() -> None:
    own = [STATES[0] + 9, STATES[6].clone()]
    own[1][0, 2] = 99
    assert hidden_loss(own, STATES, torch.tensor([[1.0, 1.0, 0.0]])) == 0
    assert hidden_loss(own, STATES, ALL) > 0
