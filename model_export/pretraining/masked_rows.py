"""Texts as rows to learn from, and their masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from transformers import DataCollatorForLanguageModeling, PreTrainedTokenizerBase

from model_export.pretraining.ad_texts import AdText
from model_export.pretraining.recipe import PretrainRecipe
from model_export.training_rows import Row

NEXT, OTHER = 0, 1
"""Labels of a second part: it follows the first one, or it is another text's (transformers')."""

NO_LABEL = -100
"""What has nothing to be learnt of; transformers' and torch's number for it."""

MASKED, NEXT_SENTENCE = "masked", "next_sentence"
"""Kinds of labels in a batch."""


def to_rows(
    texts: Sequence[AdText], tokenizer: PreTrainedTokenizerBase, recipe: PretrainRecipe
) -> list[Row]:
    """A row for each text.

    With next sentences every second text that has two parts gets another text's second part, and
    each row says in `next_sentence_label` whether it did; texts in one part teach nothing there.

    Args:
        texts: To encode.
        tokenizer: Of the base.
        recipe: Says the length, whether there are next sentences, and the seed of the swaps.
    """
    rng = np.random.default_rng(recipe.seed)
    parted = [text for text in texts if text.second]
    rows = []
    for text in texts:
        second, label = text.second, NO_LABEL
        if recipe.next_sentence and second:
            other = parted[rng.integers(len(parted))].second
            label = OTHER if rng.random() < 0.5 and other != second else NEXT
            second = other if label == OTHER else second
        row: Row = dict(
            tokenizer(
                text.first,
                second or None,
                truncation=True,
                max_length=recipe.max_text_tokens,
                return_special_tokens_mask=True,
            )
        )
        if recipe.next_sentence:
            row["next_sentence_label"] = label
        rows.append(row)
    return rows


def masking(
    tokenizer: PreTrainedTokenizerBase, recipe: PretrainRecipe
) -> Callable[[Sequence[Row]], dict[str, Any]]:
    """Rows -> padded batch; each call draws masks anew, from torch's random numbers.

    Its `labels` are by kind: `masked` (b, t), and with next sentences `next_sentence` (b,).
    """
    mask = DataCollatorForLanguageModeling(tokenizer, mlm_probability=recipe.mask_share)

    def collate(rows: Sequence[Row]) -> dict[str, Any]:
        batch = dict(mask([dict(row) for row in rows]))
        labels = {MASKED: batch.pop("labels")}
        if recipe.next_sentence:
            labels[NEXT_SENTENCE] = batch.pop("next_sentence_label")
        return {**batch, "labels": labels}

    return collate
