"""What pre-training minimises: the masked words, and whether the second part follows the first.

Transformers' own models take the mean over the labels of a batch, which is no number where a batch
has none of a kind: few short texts without a mask, or texts in one part alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from model_export.pretraining.masked_rows import MASKED, NEXT_SENTENCE, NO_LABEL


def pretraining_loss(
    outputs: Mapping[str, Any],
    labels: Mapping[str, torch.Tensor],
    num_items_in_batch: object = None,  # noqa: ARG001  # the Trainer's; counted by kind here
) -> torch.Tensor:
    """Mean nats a masked word, and those a text in two parts where there are next sentences.

    Args:
        outputs: Of a masked-language model; with next sentences, of BertForPreTraining.
        labels: As `masking` makes them.
        num_items_in_batch: Not read.
    """
    total, count = masked_nats(outputs, labels[MASKED])
    loss = total / max(1, count)
    if NEXT_SENTENCE in labels:
        total, count = _nats(outputs["seq_relationship_logits"], labels[NEXT_SENTENCE])
        loss = loss + total / max(1, count)
    return loss


def masked_nats(outputs: Mapping[str, Any], labels: torch.Tensor) -> tuple[torch.Tensor, int]:
    """Sum of the cross-entropies of the masked words, and their number.

    Args:
        outputs: Of a masked-language model.
        labels: (b, t), `NO_LABEL` where nothing is masked.
    """
    name = "prediction_logits" if "prediction_logits" in outputs else "logits"  # by family
    return _nats(outputs[name], labels)


def _nats(logits: torch.Tensor, labels: torch.Tensor) -> tuple[torch.Tensor, int]:
    is_known = labels != NO_LABEL
    known = labels[is_known]
    return cross_entropy(logits[is_known].float(), known, reduction="sum"), len(known)
