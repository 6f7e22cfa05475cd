"""The library's losses through our stand-in, against the papers' formulas written out."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from model_export.finetuning.ranking_losses import ranking_loss

LOGITS = [2.0, -1.0, 0.5, 0.1, 1.5]
GAINS = [0.0, 1.0, 2.0, 1.0, 0.0]
LISTS = [0.0, 0.0, 0.0, 1.0, 1.0]
MEMBERS = ((0, 1, 2), (3, 4))


def loss_value(name: str) -> float:
    labels = torch.tensor(list(zip(GAINS, LISTS, strict=True)))
    outputs = {"logits": torch.tensor(LOGITS)[:, None]}
    return float(ranking_loss(name)(outputs, labels))  # type: ignore[arg-type]  # a test's str


def pairs_of_different_gain() -> list[tuple[int, int]]:
    return [(i, j) for own in MEMBERS for i in own for j in own if GAINS[i] > GAINS[j]]


def test_ranknet_is_the_mean_of_log_loss_over_pairs_of_one_query() -> None:
    costs = [math.log2(1 + math.exp(LOGITS[j] - LOGITS[i])) for i, j in pairs_of_different_gain()]
    assert loss_value("ranknet") == pytest.approx(sum(costs) / len(costs), rel=1e-5)


def test_listnet_is_the_cross_entropy_of_two_softmaxes() -> None:
    def softmax(values: list[float], own: tuple[int, ...]) -> list[float]:
        total = sum(math.exp(values[i]) for i in own)
        return [math.exp(values[i]) / total for i in own]

    costs = [
        -sum(
            p * math.log(q) for p, q in zip(softmax(GAINS, own), softmax(LOGITS, own), strict=True)
        )
        for own in MEMBERS
    ]
    assert loss_value("listnet") == pytest.approx(sum(costs) / len(costs), rel=1e-5)


@pytest.mark.parametrize("name", ["ranknet", "listnet", "lambda"])
def test_a_better_order_costs_less_and_gradients_point_there(name: str) -> None:
    logits = torch.tensor(LOGITS, requires_grad=True)
    labels = torch.tensor(list(zip(GAINS, LISTS, strict=True)))
    compute: Callable[..., torch.Tensor] = ranking_loss(name)  # type: ignore[arg-type]  # as above
    before = compute({"logits": logits[:, None]}, labels)
    before.backward()
    assert logits.grad is not None
    assert logits.grad[2] < 0 < logits.grad[0], "the best ad goes up, the worst down"
    after = compute({"logits": (logits - 0.5 * logits.grad)[:, None]}, labels)
    assert after < before


@pytest.mark.parametrize("name", ["ranknet", "listnet", "lambda"])
def test_only_differences_within_a_list_count(name: str) -> None:
    labels = torch.tensor(list(zip(GAINS, LISTS, strict=True)))
    moved = torch.tensor([logit + 3 * number for logit, number in zip(LOGITS, LISTS, strict=True)])
    loss = ranking_loss(name)  # type: ignore[arg-type]  # as above
    assert float(loss({"logits": moved[:, None]}, labels)) == pytest.approx(loss_value(name))
