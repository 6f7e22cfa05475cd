from __future__ import annotations

import math

import pytest
import torch

from model_export.pretraining.loss import pretraining_loss
from model_export.pretraining.masked_rows import MASKED, NEXT, NEXT_SENTENCE, NO_LABEL, OTHER

WORDS, N_TEXTS, N_TOKENS = 7, 3, 4


@pytest.fixture
def outputs() -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    return {
        "prediction_logits": torch.randn(N_TEXTS, N_TOKENS, WORDS, requires_grad=True),
        "seq_relationship_logits": torch.randn(N_TEXTS, 2, requires_grad=True),
    }


def labels_of(words: dict[tuple[int, int], int], pairs: list[int]) -> dict[str, torch.Tensor]:
    masked = torch.full((N_TEXTS, N_TOKENS), NO_LABEL)
    for place, word in words.items():
        masked[place] = word
    return {MASKED: masked, NEXT_SENTENCE: torch.tensor(pairs)}


def nats(logits: torch.Tensor, label: int) -> float:
    return float(-logits.log_softmax(-1)[label])


def test_it_is_the_mean_over_what_has_a_label_of_each_kind(
    outputs: dict[str, torch.Tensor],
) -> None:
    labels = labels_of({(0, 1): 3, (2, 2): 5}, [NEXT, NO_LABEL, OTHER])
    words, pairs = (logits.detach() for logits in outputs.values())
    own = (nats(words[0, 1], 3) + nats(words[2, 2], 5)) / 2
    own += (nats(pairs[0], NEXT) + nats(pairs[2], OTHER)) / 2
    assert pretraining_loss(outputs, labels).item() == pytest.approx(own, rel=1e-6)


def test_without_next_sentences_the_words_alone_count(outputs: dict[str, torch.Tensor]) -> None:
    labels = {MASKED: labels_of({(1, 0): 2}, [NEXT] * 3)[MASKED]}
    logits = outputs["prediction_logits"]
    loss = pretraining_loss({"logits": logits}, labels)
    assert loss.item() == pytest.approx(nats(logits.detach()[1, 0], 2), rel=1e-6)


def test_a_batch_without_labels_of_a_kind_teaches_nothing_of_it(
    outputs: dict[str, torch.Tensor],
) -> None:
    loss = pretraining_loss(outputs, labels_of({}, [NO_LABEL] * 3))
    loss.backward()
    assert loss.item() == 0
    assert all(
        value.grad is not None and math.isfinite(value.grad.sum()) and not value.grad.any()
        for value in outputs.values()
    )
