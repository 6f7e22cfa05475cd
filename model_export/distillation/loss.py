"""What a student is trained on: the distance from its teacher, and from people where they said."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

UNKNOWN = math.nan  # in place of a log-odds or a label that nobody gave


def distillation_loss(label_weight: float) -> Callable[..., torch.Tensor]:
    """(student's log-odds - teacher's)^2 + weight * cross-entropy with the label, mean over pairs.

    Either part is 0 for a pair that lacks its target.

    Source: Hinton et al. 2015, section 2.1: at high temperature matching logits is their squared
    difference. With one logit that needs no temperature.
    """

    def loss(
        outputs: Any,  # noqa: ANN401  # untyped library
        labels: torch.Tensor,  # (b, 2): teacher's log-odds, label; NaN where unknown
        num_items_in_batch: object = None,  # noqa: ARG001  # the Trainer's signature
    ) -> torch.Tensor:
        logits: torch.Tensor = outputs["logits"][:, 0].float()
        margins, truth = labels[:, 0], labels[:, 1]
        taught, judged = ~margins.isnan(), ~truth.isnan()
        squared = (logits - margins.nan_to_num()) ** 2 * taught
        crossed = functional.binary_cross_entropy_with_logits(
            logits, truth.nan_to_num(), reduction="none"
        )
        total: torch.Tensor = squared + label_weight * crossed * judged
        return total.mean()

    return loss
