from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch
from transformers import AutoTokenizer

from model_export.pretraining.ad_texts import AdText
from model_export.pretraining.masked_rows import (
    MASKED,
    NEXT,
    NEXT_SENTENCE,
    NO_LABEL,
    OTHER,
    masking,
    to_rows,
)
from model_export.pretraining.recipe import PretrainRecipe
from tests.tiny_models import WORDS, write_tokenizer

if TYPE_CHECKING:
    from pathlib import Path

    from transformers import PreTrainedTokenizerBase

RECIPE = PretrainRecipe(max_text_tokens=32)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> PreTrainedTokenizerBase:
    folder: Path = tmp_path_factory.mktemp("tokenizer")
    write_tokenizer(folder)
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(folder)
    return loaded


def texts(n_texts: int) -> list[AdText]:
    return [
        AdText(
            " ".join(WORDS[(i + j) % len(WORDS)] for j in range(14)),
            " ".join(WORDS[i >> s & 7] for s in (0, 3, 6)),
        )
        for i in range(n_texts)
    ]


def test_of_the_positions_15_percent_are_guessed_80_10_10_of_them_hidden_swapped_and_shown(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    torch.manual_seed(0)
    rows = to_rows(texts(2000), tokenizer, RECIPE)
    batch = masking(tokenizer, RECIPE)(rows)
    longest = batch["input_ids"].shape[1]
    padded = [row["input_ids"] + [tokenizer.pad_token_id] * longest for row in rows]
    original = torch.tensor([row[:longest] for row in padded])
    around = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id)
    special = torch.isin(original, torch.tensor(around))
    labels = batch["labels"][MASKED]
    guessed = labels != NO_LABEL
    assert not (guessed & special).any()
    n_guessed = int(guessed.sum())
    # Three standard deviations of a share of n are under 1.5 % here.
    assert n_guessed / int((~special).sum()) == pytest.approx(0.15, abs=0.01)
    assert torch.equal(labels[guessed], original[guessed])
    now, before = batch["input_ids"][guessed], original[guessed]
    hidden = now == tokenizer.mask_token_id
    shown = now == before
    assert int(hidden.sum()) / n_guessed == pytest.approx(0.8, abs=0.02)
    # Every so often the other token is the same one by chance: 1 of the vocabulary's.
    assert int(shown.sum()) / n_guessed == pytest.approx(0.1, abs=0.02)
    assert int((~hidden & ~shown).sum()) / n_guessed == pytest.approx(0.1, abs=0.02)
    assert torch.equal(batch["input_ids"][~guessed], original[~guessed])


def test_masks_are_drawn_anew_each_time(tokenizer: PreTrainedTokenizerBase) -> None:
    torch.manual_seed(0)
    rows, collate = to_rows(texts(20), tokenizer, RECIPE), masking(tokenizer, RECIPE)
    first, second = (collate(rows)["labels"][MASKED] for _ in range(2))
    assert not torch.equal(first, second)


def test_half_of_the_second_parts_are_another_texts_and_the_label_says_which(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    recipe = PretrainRecipe(next_sentence=True, max_text_tokens=64)
    own = texts(400)
    rows = to_rows([*own, AdText("a lamp alone")], tokenizer, recipe)
    labels = [row["next_sentence_label"] for row in rows]
    assert labels[-1] == NO_LABEL
    assert labels.count(OTHER) / 400 == pytest.approx(0.5, abs=0.1)
    batch = masking(tokenizer, recipe)(rows)
    assert batch["labels"][NEXT_SENTENCE].tolist() == labels
    assert "next_sentence_label" not in batch, "the model would take its own loss of it"
    for text, row in zip(own, rows, strict=False):
        second = tokenizer(text.first, text.second)["input_ids"]
        assert (row["input_ids"] == second) is (row["next_sentence_label"] == NEXT)


def test_a_row_without_next_sentences_has_both_parts_and_their_segments(
    tokenizer: PreTrainedTokenizerBase,
) -> None:
    [row] = to_rows([AdText("red shoe", "cheap")], tokenizer, RECIPE)
    assert row["token_type_ids"] == [0, 0, 0, 0, 1, 1]
    assert "next_sentence_label" not in row
