"""Ads that a search by words takes for relevant and nobody judged, as irrelevant pairs.

They teach what word overlap does not: most ads that a query meets in training by chance are
strangers to it, and told apart without learning anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from model_export.distillation.pair_sampling import IN_QUERY_RANKS, NEAR_MISS_RANKS
from model_export.evaluation.baselines import bm25_ranker
from model_export.held_out_queries import query_key, query_keys
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from service.scoring.ad_template import AdTemplate


def mine_hard_negatives(
    pairs: Sequence[LabelledPair],
    per_query: int,
    held_out: Collection[str],
    template: AdTemplate,
) -> list[LabelledPair]:
    """Up to `per_query` pairs of label 0 for each query of the training pairs.

    They are the best by BM25 among ranks 11 to 200 that share a word with the query and were not
    judged for it; the ten best are left out, since many of those are relevant, judged or not.

    Args:
        pairs: Training pairs; their ads are what is searched.
        per_query: Most pairs for a query, in however many spellings it stands (see `query_key`).
        held_out: Queries of the dev pairs, which get none, see `query_key`.
        template: How an ad becomes text.

    Raises:
        ExportError: bm25s is not installed.
    """
    ads = {template.render(pair.ad): pair.ad for pair in pairs}
    texts = list(ads)
    grades = [pair.grade for pair in pairs if pair.grade is not None]
    worst = None
    if len(grades) == len(pairs):
        worst = Grade(0.0, max(grade.best for grade in grades))
    judged: dict[str, set[str]] = {}
    spelling: dict[str, str] = {}  # of each query where it first stands
    for pair in pairs:
        key = query_key(pair.query)
        spelling.setdefault(key, pair.query)
        judged.setdefault(key, set()).add(template.render(pair.ad))
    kept_out = query_keys(held_out)
    scores_of = bm25_ranker(texts)
    mined = []
    for key, known in judged.items():
        if key in kept_out:
            continue
        query = spelling[key]
        scores = scores_of(query)
        ranking = np.argsort(-scores, kind="stable")[IN_QUERY_RANKS:NEAR_MISS_RANKS]
        near = [texts[ad] for ad in ranking if scores[ad] > 0 and texts[ad] not in known]
        mined += [
            LabelledPair(query, ads[text], label=0.0, grade=worst) for text in near[:per_query]
        ]
    return mined
