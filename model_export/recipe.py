"""What a fine-tuning run is made of: its hyper-parameters, and what a labelled pair teaches."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from model_export.errors import ExportError
from model_export.recipe_ranges import require_at_least, require_rates, require_shares
from service.scoring.ad_template import AdTemplate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from model_export.pairs import LabelledPair
    from model_export.sentence_embedding import Pooling  # imports torch

DEFAULT_BASE = "sentence-transformers/all-MiniLM-L6-v2"

REPORT_FILE = "training_report.json"

RELEVANT_VOTE = 0.5
"""Raters' votes from here on count as relevant: of grades 0-3 that is 2 and 3, as in the labels of
the Chorus pairs."""

Approach = Literal["lora", "full", "features"]
HeadName = Literal["logit", "classes", "grades"]
LossName = Literal["bce", "mse", "cross-entropy", "ranknet", "listnet", "lambda"]

LOSSES_OF_HEAD: Mapping[HeadName, tuple[LossName, ...]] = {
    "logit": ("bce", "mse", "ranknet", "listnet", "lambda"),
    "classes": ("cross-entropy",),
    "grades": ("cross-entropy",),
}
"""What each head can be trained on, its usual loss first."""

RANKING_LOSSES: frozenset[LossName] = frozenset({"ranknet", "listnet", "lambda"})
"""Losses over the ads of one query; the others look at each pair by itself."""

_WITHOUT_TEACHER = {"imitation_pairs": 0, "teacher_share": 0.0}

USUAL: Mapping[Approach, Mapping[str, Any]] = {
    "lora": {},
    # Devlin et al. 2019, appendix A.3: 2e-5 to 5e-5 and 2 to 4 epochs for BERT-base and -large.
    "full": {"learning_rate": 3e-5, "max_pair_tokens": 128, **_WITHOUT_TEACHER},
    "features": {
        "learning_rate": 3e-3,
        # Of a head alone; on the default model's pairs the dev figure was best after two.
        "epochs": 10,
        "max_pair_tokens": 128,
        "pooling": "mean",
        **_WITHOUT_TEACHER,
    },
}
"""Where an approach differs from the defaults of `FinetuneRecipe`."""


@dataclass(frozen=True, slots=True)
class FinetuneRecipe:
    """All hyper-parameters; the defaults gave the default model (figures in its model card).

    Attributes:
        approach: `lora` trains low-rank updates of a frozen BERT and makes an adapter; `full`
            trains all weights, `features` a linear head on an encoder that stays as it is. Both
            make a checkpoint.
        head: `logit`: one, the log-odds of relevance. `classes`: two. `grades`: one for each grade
            of the pairs' scale, served as the expected grade.
        loss: One of `LOSSES_OF_HEAD`. `mse` is of the score, sigmoid(logit), not of the logit.
        pooling: What a linear head reads, see `Pooling`; None is the family's own head.
        imitation_pairs: Unjudged pairs labelled by sentence similarity for the first stage; 0
            leaves the stage out (for a base that was not trained to embed sentences).
        imitation_pairs_per_query: How many of them share a query.
        pseudo_query_share: Part of them whose query is a span of words of an ad.
        imitation_learning_rate: Peak of the first stage, which makes one pass.
        epochs: Passes over the labelled pairs in the second stage.
        learning_rate: Peak of the second stage.
        max_grade: The best grade, for rows of training and dev pairs that do not say it, see
            `read_pairs`.
        rater_share: Weight of the share of raters who found the pair relevant against the label,
            where single raters are known (see `human_target`): a pair that people disagree on is
            no sure thing. 0 leaves the label alone.
        teacher_share: Weight of the similarity's score in the targets of labelled pairs.
        hard_negatives: Ads per query that BM25 takes for relevant and nobody judged, added as
            irrelevant.
        batch_pairs: Pairs per optimizer step.
        list_pairs: Most ads of a query in one list of a ranking loss; longer ones are split.
        warmup_share: Part of a stage's steps in which the learning rate grows.
        weight_decay: AdamW's.
        patience: Epochs without a better one on the dev pairs after which training ends; 0 never.
        keep: The `best` epoch on the dev pairs, or the `last`, over which they have no say.
        lora_rank: Rank of the updates; 24 on all linear layers fills 2 MiB in fp16.
        lora_alpha: Updates are scaled by lora_alpha / lora_rank.
        max_pair_tokens: Pairs are cut to so many tokens, in training and in serving.
        ad_template: How an ad becomes text, in training and in serving.
        seed: Of everything random.
    """

    approach: Approach = "lora"
    head: HeadName = "logit"
    loss: LossName = "bce"
    pooling: Pooling | None = None
    imitation_pairs: int = 32_000
    imitation_pairs_per_query: int = 6
    pseudo_query_share: float = 0.35
    imitation_learning_rate: float = 1e-3
    epochs: int = 3
    learning_rate: float = 3e-4
    max_grade: float | None = None
    rater_share: float = 0.5
    teacher_share: float = 0.3
    hard_negatives: int = 0
    batch_pairs: int = 32
    list_pairs: int = 16
    warmup_share: float = 0.1
    weight_decay: float = 0.01
    patience: int = 0
    keep: Literal["best", "last"] = "best"
    lora_rank: int = 24
    lora_alpha: int = 48
    max_pair_tokens: int = 64
    ad_template: AdTemplate = field(default_factory=AdTemplate)
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse what no training can use, before one starts.

        Raises:
            ExportError: Names the field, its value and its limit, or the fields that do not fit.
        """
        least = {
            "epochs": 1,
            "batch_pairs": 1,
            "list_pairs": 2,
            "lora_rank": 1,
            "lora_alpha": 1,
            "imitation_pairs": 0,
            "imitation_pairs_per_query": 1,
            "hard_negatives": 0,
            "patience": 0,
            "max_pair_tokens": 8,
            "weight_decay": 0,
            "seed": 0,
        }
        require_at_least(self, least)
        require_rates(self, ("learning_rate", "imitation_learning_rate"))
        require_shares(self, ("rater_share", "teacher_share", "warmup_share", "pseudo_query_share"))
        self._require_parts_that_fit()

    @property
    def ranks(self) -> bool:
        """Whether the loss is over the ads of a query."""
        return self.loss in RANKING_LOSSES

    def _require_parts_that_fit(self) -> None:
        if self.loss not in LOSSES_OF_HEAD[self.head]:
            raise ExportError(
                f"loss {self.loss} does not fit head {self.head}, which takes "
                f"{', '.join(LOSSES_OF_HEAD[self.head])}"
            )
        if self.approach == "features" and self.pooling is None:
            raise ExportError("approach features needs a pooling: cls, mean or cat4")
        if self.approach == "lora" and self.pooling is not None:
            raise ExportError(
                "approach lora trains BERT's own head: pooling is for features and full"
            )
        if self.approach != "lora" and self.ad_template != AdTemplate():
            raise ExportError("only an adapter can say another ad_template than the default one")
        taught = bool(self.imitation_pairs or self.teacher_share)
        if taught and (self.approach, self.loss) not in (("lora", "bce"), ("lora", "mse")):
            raise ExportError(
                "imitation_pairs and teacher_share give probabilities to imitate: they are for "
                "approach lora with the loss bce or mse"
            )
        if self.patience and self.keep == "last":
            raise ExportError("patience waits for a better epoch: it needs keep best")


def recipe_for(
    approach: Approach = "lora",
    head: HeadName = "logit",
    **given: Any,  # noqa: ANN401  # fields
) -> FinetuneRecipe:
    """The usual recipe of an approach and a head, with what the user gave in its place.

    Raises:
        ExportError: See `FinetuneRecipe`.
    """
    loss = given.get("loss", LOSSES_OF_HEAD[head][0])
    usual = {**USUAL[approach]}
    if loss not in ("bce", "mse"):
        usual |= _WITHOUT_TEACHER
    return FinetuneRecipe(**{**usual, "approach": approach, "head": head, "loss": loss, **given})


def human_target(pair: LabelledPair, rater_share: float) -> float:
    """The probability of relevance that a labelled pair teaches.

    (1 - rater_share) * label + rater_share * the share of raters who gave at least half of the
    best that their scale allows; the label, where no raters are known.

    Args:
        pair: Its `rater_votes` are on a scale of 0-1 already.
        rater_share: In 0-1, see `FinetuneRecipe`.
    """
    if not pair.rater_votes:
        return pair.label
    agreeing = float(np.mean([vote >= RELEVANT_VOTE for vote in pair.rater_votes]))
    return (1 - rater_share) * pair.label + rater_share * agreeing
