"""What is wrong with the pairs of a run: refused before it starts, or said in a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from model_export.errors import BadPairsFile
from model_export.evaluate import Quality, judge
from model_export.held_out_queries import shared_queries
from model_export.pairs import LabelledPair
from model_export.recipe import FinetuneRecipe
from service.scoring.encoding import EncodedPair

MANY_TRUNCATED = 0.2  # of the pairs

Figure = str


def deciding_figure(recipe: FinetuneRecipe) -> Figure:
    """Which field of `Quality` says what epoch is the best: what the loss is about."""
    return "ndcg_at_10" if recipe.ranks else "auc"


def mean_figure(quality: Mapping[str, Quality], figure: Figure) -> float:
    """Mean of a figure over the dev files that allow it.

    Raises:
        BadPairsFile: None does.
    """
    known = [value for q in quality.values() if (value := getattr(q, figure)) is not None]
    if not known:
        needs = {
            "auc": "relevant and irrelevant pairs (a label above 0.5 or not)",
            "ndcg_at_10": "a query whose pairs have different labels or grades",
        }
        raise BadPairsFile(
            f"{', '.join(quality)}: the dev pairs must have {needs[figure]}, by which the epochs "
            "are judged"
        )
    return float(np.mean(known))


def refuse_unusable(
    train: Mapping[str, Sequence[LabelledPair]],
    dev: Mapping[str, Sequence[LabelledPair]],
    recipe: FinetuneRecipe,
) -> None:
    """Refuse pairs that nothing can be learnt from, or by which no epoch can be judged.

    Args:
        train: Training pairs by the name of their file.
        dev: Dev pairs by the name of theirs.
        recipe: Says what the loss compares.

    Raises:
        BadPairsFile: All training labels are alike, or for a ranking loss in each query; for head
            grades their scales differ; or see `mean_figure`.
    """
    named = ", ".join(train)
    pairs = [pair for own in train.values() for pair in own]
    labels = {pair.label for pair in pairs}
    if len(labels) == 1:
        raise BadPairsFile(
            f"{named}: all {len(pairs)} pairs have the relevance {labels.pop():g}, from which "
            "nothing can be learnt"
        )
    if recipe.ranks:
        gains: dict[str, set[float]] = {}
        for pair in pairs:
            gains.setdefault(pair.query, set()).add(pair.gain)
        if all(len(own) == 1 for own in gains.values()):
            raise BadPairsFile(
                f"{named}: no query has pairs of different relevance, which loss {recipe.loss} "
                "compares; take bce"
            )
    if recipe.head == "grades":
        _require_one_scale(train)
    blank = {name: judge(own, np.full(len(own), 0.5)) for name, own in dev.items()}
    mean_figure(blank, deciding_figure(recipe))


def _require_one_scale(train: Mapping[str, Sequence[LabelledPair]]) -> None:
    """A grade's place among the logits is its place on one scale."""
    scales = {
        name: sorted({pair.grade.best for pair in own if pair.grade is not None})
        for name, own in train.items()
    }
    if len({best for own in scales.values() for best in own}) > 1:
        stated = [f"{name} of 0-{best:g}" for name, own in scales.items() for best in own]
        raise BadPairsFile(
            f"head grades learns one scale, and the training pairs have grades of several: "
            f"{', '.join(stated)}; bring them to one, or take head logit, which learns labels"
        )


def warnings_of(
    pairs: Sequence[LabelledPair],
    dev: Mapping[str, Sequence[LabelledPair]],
    encoded: Sequence[EncodedPair],
    max_pair_tokens: int,
) -> list[str]:
    """Sentences about what makes figures or scores less than they seem."""
    sentences = []
    shared = shared_queries(
        (pair.query for pair in pairs), (pair.query for own in dev.values() for pair in own)
    )
    if shared:
        sentences.append(
            f"{len(shared)} queries are in the training and in the dev pairs (but for case and "
            f"white space), such as {shared[0]!r}: figures on them are too good"
        )
    cut = float(np.mean([pair.truncated for pair in encoded]))
    if cut > MANY_TRUNCATED:
        sentences.append(
            f"{cut:.0%} of the training pairs are longer than {max_pair_tokens} tokens and lose "
            "text, in serving too: see --max-pair-tokens"
        )
    return sentences
