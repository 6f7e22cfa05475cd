from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import BertForSequenceClassification, BertTokenizerFast

from model_export.training_rows import (
    Collator,
    Row,
    encode_pairs,
    into_lists,
    logits_of_rows,
    to_rows,
)
from service.scoring.encoding import PairEncoder
from tests.model_export.tiny_bert import write_tiny_base

TEXTS = [
    ("red shoes", "running shoes red"),
    ("lamp", "office chair " * 12),
    ("green office desk", "desk"),
]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def model(base: Path) -> BertForSequenceClassification:
    torch.manual_seed(0)
    loaded = BertForSequenceClassification.from_pretrained(base, num_labels=2)
    assert isinstance(loaded, BertForSequenceClassification)
    return loaded


def rows_of(base: Path) -> list[Row]:
    encoder = PairEncoder.from_file(base / "tokenizer.json", 16)
    return to_rows(encode_pairs(encoder, TEXTS), [(0.5,)] * len(TEXTS), with_segments=True)


def test_a_row_has_the_same_logits_alone_and_padded_in_a_batch(
    base: Path, model: BertForSequenceClassification
) -> None:
    collate = Collator(BertTokenizerFast.from_pretrained(base))
    together = logits_of_rows(model, rows_of(base), collate)
    alone = [logits_of_rows(model, [row], collate)[0] for row in rows_of(base)]
    assert together.shape == (3, 2)
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_rows_are_read_exactly_as_the_service_reads_them(
    base: Path, model: BertForSequenceClassification
) -> None:
    encoder = PairEncoder.from_file(base / "tokenizer.json", 16)
    logits = logits_of_rows(model, rows_of(base), Collator(BertTokenizerFast.from_pretrained(base)))
    for (query, ad_text), own in zip(TEXTS, logits, strict=True):
        (pair,) = encoder.encode(query, [ad_text])
        with torch.inference_mode():
            output = model(
                input_ids=torch.from_numpy(pair.ids[None]),
                token_type_ids=torch.from_numpy(pair.type_ids[None]),
            )
        np.testing.assert_allclose(own, output.logits[0], atol=1e-5)


def test_a_batch_says_which_list_each_row_is_of(base: Path) -> None:
    rows = rows_of(base)
    batch = Collator(BertTokenizerFast.from_pretrained(base))([rows[:2], rows[2:]])
    assert batch["labels"].tolist() == [[0.5, 0.0], [0.5, 0.0], [0.5, 1.0]]
    assert batch["input_ids"].shape == (3, 16)
    assert batch["attention_mask"].sum(dim=1).tolist() == [len(row["input_ids"]) for row in rows]


def test_long_lists_are_split_evenly_and_those_without_a_difference_left_out() -> None:
    labels = [(0.0,), (1.0,)] * 5 + [(1.0,)] * 3
    rows: list[Row] = [{"input_ids": [number], "labels": own} for number, own in enumerate(labels)]
    queries = ["a"] * 10 + ["b"] * 3
    lists = into_lists(rows, queries, 4, seed=0)
    assert 1 <= len(lists) <= 3
    assert all(3 <= len(part) <= 4 and len({row["labels"] for row in part}) == 2 for part in lists)
    numbers = [row["input_ids"][0] for part in lists for row in part]
    assert len(set(numbers)) == len(numbers)
    assert max(numbers) < 10, "the ads of b are all alike"
    assert lists == into_lists(rows, queries, 4, seed=0)
