"""Pairs for a teacher to label, from ads and queries: hits, near misses and strangers.

The ads of a query are ranked by BM25, which needs no model and no labels:

    in-query     ranks 1 to 10: what a search for the query would show       4 of 10 pairs
    near-miss    ranks 11 to 200, as long as they share a word with it       4 of 10
    cross-query  any other ads, as other queries have them                   2 of 10

Where a query has too few of a kind, fewer pairs of it are made.

Queries are those that people typed and spans of words of ads. Where texts are few, both sides can
be varied: words swapped for similar ones, which makes new near misses, and ads cut short, since
many that will be scored are only a title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from model_export.distillation.rewording import Rewording
from model_export.evaluation.baselines import bm25_ranker
from model_export.similarity_teacher import word_spans

Texts = tuple[str, str]
"""Query and ad text."""

IN_QUERY_RANKS = 10
NEAR_MISS_RANKS = 200
SHARES = (4, 4, 2)
"""Tenths of a query's pairs: in-query, near-miss, cross-query. The first two are where a student
and its teacher can differ; strangers are told apart soon."""


HALF_REWORDED = 0.5  # of either side, where a given pair is varied

SHORTEST_CUT_WORDS = 3  # of an ad that is cut short


@dataclass(frozen=True, slots=True)
class Variation:
    """How texts are varied; a pair can be varied on both sides, and an ad in both ways.

    Attributes:
        rewording: Swaps words.
        reworded_share: Part of the queries, and of the ads, with swapped words.
        cut_share: Part of the ads that end after some of their words.
    """

    rewording: Rewording
    reworded_share: float
    cut_share: float


def sample_pairs(
    queries: Sequence[str],
    ads: Sequence[Sequence[str]],
    n_pairs: int,
    *,
    pairs_per_query: int,
    pseudo_query_share: float,
    seed: int,
    variation: Variation | None = None,
) -> list[Texts]:
    """About `n_pairs` different (query, ad text) pairs in random order.

    Args:
        queries: What people typed. When there are more than fit, some are left out by chance; when
            there are fewer, the rest are those again with words swapped, or without a variation
            more pairs of each.
        ads: Texts of ads by the file that they are from; each file gives as many pseudo-queries.
        n_pairs: Pairs wanted; fewer come back when there are too few queries, ads or words.
        pairs_per_query: Pairs that share a query; more where there are few queries.
        pseudo_query_share: Part of the pairs whose query is a span of words of an ad.
        seed: Of all random choices.
        variation: How texts are varied; None leaves them as they are.

    Raises:
        ExportError: bm25s is not installed.
    """
    rng = np.random.default_rng(seed)
    texts = list(dict.fromkeys(text for some in ads for text in some))
    real = list(dict.fromkeys(queries))
    if variation is not None:
        variation.rewording.learn([*texts, *real])
    n_pseudo = round(n_pairs * pseudo_query_share / pairs_per_query)
    pseudo = _pseudo_queries(ads, n_pseudo, rng, variation)
    n_real = max(1, (n_pairs - len(pseudo) * pairs_per_query) // pairs_per_query)
    chosen = _real_queries(real, n_real, rng, variation)
    n_per_real = -(-(n_pairs - len(pseudo) * pairs_per_query) // max(1, len(chosen)))
    scores_of = bm25_ranker(texts)
    made: dict[Texts, None] = {}  # a set that keeps its order
    for some, n_each in ((pseudo, pairs_per_query), (chosen, n_per_real)):
        for query in some:
            for ad in _ads_of_query(scores_of(query), n_each, rng):
                made[query, _varied_ad(texts[ad], rng, variation)] = None
    pairs = list(made)
    return [pairs[number] for number in rng.permutation(len(pairs))[:n_pairs]]


def vary_pairs(
    pairs: Sequence[Texts], n_pairs: int, variation: Variation, seed: int
) -> list[Texts]:
    """At most `n_pairs` different variations of given pairs, which stay together.

    Each side has words swapped in half of them, and ads are cut as often as the variation says.
    A query counts as much with one pair as with many. What `sample_pairs` makes are the ads that a
    search by words would find; these stay near the pairs that people were really shown.

    Source: Jiao et al. 2020 (TinyBERT), section 3.2: twenty variations of each training pair.
    """
    rng = np.random.default_rng(seed)
    variation.rewording.learn([text for pair in pairs for text in pair])
    by_query: dict[str, list[Texts]] = {}
    for pair in pairs:
        by_query.setdefault(pair[0], []).append(pair)
    groups = list(by_query.values())
    made: dict[Texts, None] = {}
    for number in rng.integers(len(groups), size=n_pairs):
        own = groups[number]
        query, ad = own[int(rng.integers(len(own)))]
        if rng.random() < HALF_REWORDED:
            query = variation.rewording.reword(query, rng)
        made[query, _varied_ad(ad, rng, replace(variation, reworded_share=HALF_REWORDED))] = None
    return list(made)


def _pseudo_queries(
    ads: Sequence[Sequence[str]],
    n_queries: int,
    rng: np.random.Generator,
    variation: Variation | None,
) -> list[str]:
    spans: dict[str, None] = {}
    for texts in ads:
        own = list(dict.fromkeys(texts))
        n_own = -(-n_queries // len(ads))
        # An ad gives a span at a time; files with few ads give several of each.
        spans.update(dict.fromkeys(word_spans(own * -(-n_own // max(1, len(own))), n_own, rng)))
    if variation is None:
        return list(spans)
    share = variation.reworded_share
    reword = variation.rewording.reword
    varied = (reword(span, rng) if rng.random() < share else span for span in spans)
    return list(dict.fromkeys(varied))


def _real_queries(
    queries: Sequence[str], n_queries: int, rng: np.random.Generator, variation: Variation | None
) -> list[str]:
    chosen = [queries[index] for index in rng.permutation(len(queries))[:n_queries]]
    if variation is None or not variation.reworded_share or not queries:
        return chosen
    more = rng.choice(len(queries), max(0, n_queries - len(chosen)))
    reworded = (variation.rewording.reword(queries[index], rng) for index in more)
    return list(dict.fromkeys([*chosen, *reworded]))


def _varied_ad(text: str, rng: np.random.Generator, variation: Variation | None) -> str:
    if variation is None:
        return text
    if rng.random() < variation.reworded_share:
        text = variation.rewording.reword(text, rng)
    words = text.split()
    if rng.random() < variation.cut_share and len(words) > SHORTEST_CUT_WORDS:
        return " ".join(words[: int(rng.integers(SHORTEST_CUT_WORDS, len(words)))])
    return text


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
