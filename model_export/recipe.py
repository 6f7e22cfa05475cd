"""What a fine-tuning run is made of: its hyper-parameters, and what a labelled pair teaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from model_export.errors import ExportError
from service.scoring.ad_template import AdTemplate

if TYPE_CHECKING:
    from model_export.pairs import LabelledPair

DEFAULT_BASE = "sentence-transformers/all-MiniLM-L6-v2"

RELEVANT_GRADE = 2
"""Graded judgements from here on count as relevant, as in the labels of the Chorus pairs."""


@dataclass(frozen=True, slots=True)
class FinetuneRecipe:
    """All hyper-parameters; the defaults gave the default model (figures in its model card).

    Attributes:
        imitation_pairs: Unjudged pairs labelled by sentence similarity for the first stage; 0
            leaves the stage out (for a base that was not trained to embed sentences).
        imitation_pairs_per_query: How many of them share a query.
        pseudo_query_share: Part of them whose query is a span of words of an ad.
        imitation_learning_rate: Peak of the first stage, which makes one pass.
        epochs: Passes over the labelled pairs in the second stage.
        learning_rate: Peak of the second stage.
        rater_share: Weight of the share of raters who found the pair relevant against the label,
            where single raters are known: a pair that people disagree on is no sure thing.
        teacher_share: Weight of the similarity's score in the targets of labelled pairs.
        batch_pairs: Pairs per optimizer step.
        warmup_share: Part of a stage's steps in which the learning rate grows.
        weight_decay: AdamW's.
        lora_rank: Rank of the updates; 24 on all linear layers fills 2 MiB in fp16.
        lora_alpha: Updates are scaled by lora_alpha / lora_rank.
        max_pair_tokens: Pairs are cut to so many tokens, in training and in serving.
        ad_template: How an ad becomes text, in training and in serving.
        seed: Of everything random.
    """

    imitation_pairs: int = 32_000
    imitation_pairs_per_query: int = 6
    pseudo_query_share: float = 0.35
    imitation_learning_rate: float = 1e-3
    epochs: int = 3
    learning_rate: float = 3e-4
    rater_share: float = 0.5
    teacher_share: float = 0.3
    batch_pairs: int = 32
    warmup_share: float = 0.1
    weight_decay: float = 0.01
    lora_rank: int = 24
    lora_alpha: int = 48
    max_pair_tokens: int = 64
    ad_template: AdTemplate = field(default_factory=AdTemplate)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse numbers that no training can use, before one starts."""
        for name in (
            "epochs",
            "batch_pairs",
            "lora_rank",
            "lora_alpha",
            "imitation_pairs_per_query",
        ):
            if getattr(self, name) < 1:
                raise ExportError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.imitation_pairs < 0 or not self.learning_rate > 0 or self.max_pair_tokens < 8:
            raise ExportError(
                "imitation_pairs must not be negative, learning_rate must be over 0 and "
                f"max_pair_tokens at least 8; got {self.imitation_pairs}, {self.learning_rate} "
                f"and {self.max_pair_tokens}"
            )


def human_target(pair: LabelledPair, rater_share: float) -> float:
    """The probability of relevance that a labelled pair teaches, see `FinetuneRecipe`."""
    if not pair.rater_grades:
        return pair.label
    agreeing = float(np.mean([grade >= RELEVANT_GRADE for grade in pair.rater_grades]))
    return (1 - rater_share) * pair.label + rater_share * agreeing
