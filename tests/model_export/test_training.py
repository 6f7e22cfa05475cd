from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification, BertTokenizerFast

from model_export.training import TargetRow, logits_of_rows
from service.scoring.encoding import PairEncoder
from tests.model_export.tiny_bert import write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

ROWS = [
    TargetRow("red shoes", "running shoes red", 1.0),
    TargetRow("lamp", "office chair " * 12, 0.0),
    TargetRow("green office desk", "desk", 1.0),
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def model(base: Path) -> BertForSequenceClassification:
    torch.manual_seed(0)
    loaded = BertForSequenceClassification.from_pretrained(base, num_labels=1)
    assert isinstance(loaded, BertForSequenceClassification)
    loaded.requires_grad_(requires_grad=False).train(mode=False)
    return loaded


def test_a_row_has_the_same_logit_alone_and_padded_in_a_batch(
    base: Path, model: BertForSequenceClassification
) -> None:
    tokenizer = BertTokenizerFast.from_pretrained(base)
    together = logits_of_rows(model, tokenizer, ROWS, 16)
    alone = [logits_of_rows(model, tokenizer, [row], 16)[0] for row in ROWS]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_rows_are_read_exactly_as_the_service_reads_them(
    base: Path, model: BertForSequenceClassification
) -> None:
    encoder = PairEncoder.from_file(base / "tokenizer.json", 16)
    expected = []
    for row in ROWS:
        (pair,) = encoder.encode(row.query, [row.ad_text])
        with torch.inference_mode():
            output = model(
                input_ids=torch.from_numpy(pair.ids[None]),
                token_type_ids=torch.from_numpy(pair.type_ids[None]),
            )
        expected.append(float(output.logits[0, 0]))
    logits = logits_of_rows(model, BertTokenizerFast.from_pretrained(base), ROWS, 16)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
