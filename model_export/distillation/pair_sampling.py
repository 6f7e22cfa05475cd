"""Pairs for a teacher to label, from ads and queries: hits, near misses and strangers.

The ads of a query are ranked by BM25, which needs no model and no labels:

    in-query     ranks 1 to 10: what a search for the query would show       4 of 10 pairs
    near-miss    ranks 11 to 200, as long as they share a word with it       4 of 10
    cross-query  any other ads, as other queries have them                   2 of 10

Where a query has too few of a kind, fewer pairs of it are made.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model_export.evaluation.baselines import bm25_ranker
from model_export.similarity_teacher import word_spans

Texts = tuple[str, str]
"""Query and ad text."""

IN_QUERY_RANKS = 10
NEAR_MISS_RANKS = 200
SHARES = (4, 4, 2)
"""Tenths of a query's pairs: in-query, near-miss, cross-query. The first two are where a student
and its teacher can differ; strangers are told apart soon."""


def sample_pairs(
    queries: Sequence[str],
    ads: Sequence[str],
    n_pairs: int,
    *,
    pairs_per_query: int,
    pseudo_query_share: float,
    seed: int,
) -> list[Texts]:
    """About `n_pairs` different (query, ad text) pairs in random order.

    Args:
        queries: What people typed; when there are more than fit, some are left out by chance.
        ads: Texts of ads.
        n_pairs: Pairs wanted; fewer come back when there are too few queries, ads or words.
        pairs_per_query: Pairs that share a query; more where there are few queries.
        pseudo_query_share: Part of the pairs whose query is a span of words of an ad.
        seed: Of all random choices.

    Raises:
        ExportError: bm25s is not installed.
    """
    rng = np.random.default_rng(seed)
    texts = list(dict.fromkeys(ads))
    n_pseudo = round(n_pairs * pseudo_query_share / pairs_per_query)
    spans = word_spans(texts, n_pseudo, rng)
    real = list(dict.fromkeys(queries))
    n_real = max(1, (n_pairs - len(spans) * pairs_per_query) // pairs_per_query)
    chosen = [real[index] for index in rng.permutation(len(real))[:n_real]]
    n_per_real = -(-(n_pairs - len(spans) * pairs_per_query) // max(1, len(chosen)))
    scores_of = bm25_ranker(texts)
    made: dict[Texts, None] = {}  # a set that keeps its order
    for some, n_each in ((spans, pairs_per_query), (chosen, n_per_real)):
        for query in some:
            for ad in _ads_of_query(scores_of(query), n_each, rng):
                made[query, texts[ad]] = None
    pairs = list(made)
    return [pairs[number] for number in rng.permutation(len(pairs))[:n_pairs]]


def _ads_of_query(
    scores: NDArray[np.float64], n_pairs: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Numbers of ads, without repetition."""
    ranking = np.argsort(-scores, kind="stable")
    n_found = int((scores > 0).sum())
    first, last = min(IN_QUERY_RANKS, n_found), min(NEAR_MISS_RANKS, n_found)
    zones = (ranking[:first], ranking[first:last], ranking[last:])
    n_hits, n_near = (n_pairs * share // sum(SHARES) for share in SHARES[:2])
    counts = (n_hits, n_near, n_pairs - n_hits - n_near)
    return np.concatenate(
        [
            rng.choice(zone, min(count, len(zone)), replace=False)
            for zone, count in zip(zones, counts, strict=True)
        ]
    )
