"""What a student is trained on: the distance from its teacher, and from people where they said."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

UNKNOWN = math.nan  # in place of a log-odds or a label that nobody gave


def distillation_loss(
    logits: torch.Tensor,  # (b, 1)
    margins: torch.Tensor,  # (b,) NaN where unknown
    labels: torch.Tensor,  # (b,) as above
    label_weight: float,
) -> torch.Tensor:
    """(student's log-odds - teacher's)^2 + weight * cross-entropy with the label, mean over pairs.

    Either part is 0 for a pair that lacks its target.

    Source: Hinton et al. 2015, section 2.1: at high temperature matching logits is their squared
    difference. With one logit that needs no temperature.
    """
    own = logits[:, 0].float()
    squared = (own - margins.nan_to_num()) ** 2 * ~margins.isnan()
    crossed = functional.binary_cross_entropy_with_logits(
        own, labels.nan_to_num(), reduction="none"
    )
    total: torch.Tensor = squared + label_weight * crossed * ~labels.isnan()
    return total.mean()


def hidden_loss(
    student: Sequence[torch.Tensor],  # (b, t, d) each, after the embeddings and after each layer
    teacher: Sequence[torch.Tensor],  # as above, of a model with more layers
    mask: torch.Tensor,  # (b, t) 1 where there is a token
) -> torch.Tensor:
    """Mean over the student's layers of |its states - the teacher's|^2 / |the teacher's|^2.

    The student's layer i of n is compared with the teacher's layer ceil(i N / n) of N, so the last
    with the last. Both are as wide, since the student is made of the teacher's layers.

    Source: Jiao et al. 2020 (TinyBERT), equations 7 and 9, without the map between widths; divided
    by the teacher's, because layers differ in scale.
    """
    n, n_teacher = len(student) - 1, len(teacher) - 1
    kept = mask.bool()
    parts = []
    for number in range(1, n + 1):
        own = student[number][kept].float()
        wanted = teacher[-(-number * n_teacher // n)][kept].float()
        parts.append(functional.mse_loss(own, wanted) / wanted.square().mean())
    return torch.stack(parts).mean()
