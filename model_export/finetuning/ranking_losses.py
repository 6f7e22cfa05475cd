"""sentence-transformers' ranking losses, on logits that are there already.

Its classes tokenize texts and run a CrossEncoder themselves. Here the pairs were encoded by the
service's own encoder and the Trainer runs the model, so the classes get a stand-in for a
CrossEncoder that hands out the logits by their row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from sentence_transformers.cross_encoder.losses import LambdaLoss, ListNetLoss, RankNetLoss

from model_export.recipe import LossName

_CLASSES: dict[LossName, Any] = {
    "ranknet": RankNetLoss,
    "listnet": ListNetLoss,
    "lambda": LambdaLoss,
}

WHOLE_BATCH = -1  # sentence-transformers' word for "no mini-batches": the logits are all there


def ranking_loss(name: LossName) -> Callable[..., torch.Tensor]:
    """A loss over lists: (outputs, labels (n, 2): grade, number of the list) -> scalar.

    `ranknet` and `lambda` (its NDCG-Loss2++ weights) are means over the pairs of ads whose grades
    differ, in bits; `listnet` compares the softmax of the logits with that of the grades.

    Sources: Burges et al. 2005; Wang et al. 2018; Cao et al. 2007, top-one probabilities.
    """
    make = _CLASSES[name]

    def loss(
        outputs: Any,  # noqa: ANN401  # untyped library
        labels: torch.Tensor,
        num_items_in_batch: object = None,  # noqa: ARG001  # the Trainer's signature
    ) -> torch.Tensor:
        logits = outputs["logits"][:, 0].float()
        rows = [torch.nonzero(labels[:, 1] == number)[:, 0] for number in labels[:, 1].unique()]
        criterion = make(_Scored(logits), mini_batch_size=WHOLE_BATCH)
        docs = [chosen.tolist() for chosen in rows]
        value: torch.Tensor = criterion(
            [list(range(len(rows))), docs], [labels[chosen, 0] for chosen in rows]
        )
        return value

    return loss


class _Scored:
    """What the losses ask of a CrossEncoder, whose "documents" are rows of the logits."""

    num_labels = 1

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits
        self.device = logits.device

    def preprocess(self, pairs: Sequence[tuple[int, int]], **_: object) -> dict[str, torch.Tensor]:
        return {"rows": torch.tensor([row for _, row in pairs])}

    def __call__(self, features: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"scores": self._logits[features["rows"]]}
