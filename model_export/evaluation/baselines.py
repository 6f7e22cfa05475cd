"""What methods without any training on relevance reach on the same pairs.

Their scores order ads; none is a probability. All of them read an ad by the default template:
title, then description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from model_export.errors import ExportError
from model_export.evaluation.models import Scored
from model_export.pairs import LabelledPair
from service.scoring.ad_template import AdTemplate

if TYPE_CHECKING:
    from model_export.sentence_embedding import Pooling

_WORD = re.compile(r"\w+")

COSINES: dict[Pooling, str] = {
    "cls": "cosine, [CLS]",
    "mean": "cosine, mean",
    "cat4": "cosine, cat4",
}
"""Names of the bi-encoder's rows, by pooling."""


def score_baselines(
    pairs: Sequence[LabelledPair], base: str, *, show_progress: bool = False
) -> list[Scored]:
    """Word overlap, BM25, and the base encoder's cosine in three poolings.

    Args:
        pairs: n pairs.
        base: Folder, hub id or package of a BERT encoder, see `resolve_base`.
        show_progress: Whether to draw a progress bar while texts are embedded.

    Raises:
        ExportError: bm25s is not installed.
        BaseWeightsMissing: The encoder was found nowhere.
    """
    queries = [pair.query for pair in pairs]
    ads = [AdTemplate().render(pair.ad) for pair in pairs]
    made = {
        "word overlap": word_overlap(queries, ads),
        "BM25": bm25(queries, ads),
        **base_cosines(queries, ads, base, show_progress=show_progress),
    }
    return [Scored(name, "baseline", scores, False) for name, scores in made.items()]


def words(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in lower case."""
    return _WORD.findall(text.lower())


def word_overlap(queries: Sequence[str], ads: Sequence[str]) -> NDArray[np.float64]:
    """(n,) |words of the query that are in the ad| / |words of the query|, each word once.

    0 for a query without words.
    """
    shares = np.zeros(len(queries))
    for index, (query, ad) in enumerate(zip(queries, ads, strict=True)):
        wanted = set(words(query))
        if wanted:
            shares[index] = len(wanted & set(words(ad))) / len(wanted)
    return shares


def bm25_ranker(corpus: Sequence[str]) -> Callable[[str], NDArray[np.float64]]:
    """A function that gives the (n,) BM25 scores of a query with each of n texts.

    Lucene's variant with k1 = 1.5 and b = 0.75 (bm25s's own defaults), over `words`: no stemming,
    no stop words. No score is above 0 where no word is shared.

    Raises:
        ExportError: bm25s is not installed.

    Source: Robertson and Zaragoza 2009; variants in Kamphuis et al. 2020.
    """
    try:
        import bm25s
    except ImportError as error:
        raise ExportError(
            "BM25 needs the package bm25s: pip install bm25s, or the extra 'export'"
        ) from error
    tokens = [words(text) for text in corpus]
    index = bm25s.BM25()
    if any(tokens):
        index.index(tokens, show_progress=False)

    def scores(query: str) -> NDArray[np.float64]:
        wanted = words(query)
        if not wanted or not any(tokens):
            return np.zeros(len(tokens))
        return np.asarray(index.get_scores(wanted), dtype=np.float64)

    return scores


def bm25(queries: Sequence[str], ads: Sequence[str]) -> NDArray[np.float64]:
    """(n,) BM25 of each query and its own ad; how rare a word is comes from the ads given.

    Every ad text counts once in the corpus.

    Raises:
        ExportError: bm25s is not installed.
    """
    corpus = list(dict.fromkeys(ads))
    ad_at = {text: number for number, text in enumerate(corpus)}
    scores_of = bm25_ranker(corpus)
    rows_of: dict[str, list[int]] = {}
    for row, query in enumerate(queries):
        rows_of.setdefault(query, []).append(row)
    scores = np.zeros(len(queries))
    for query, rows in rows_of.items():
        scores[rows] = scores_of(query)[[ad_at[ads[row]] for row in rows]]
    return scores


def base_cosines(
    queries: Sequence[str], ads: Sequence[str], base: str, *, show_progress: bool
) -> dict[str, NDArray[np.float64]]:
    """By name, the (n,) cosines of query and ad, embedded apart by the base encoder."""
    from model_export.base_weights import resolve_base
    from model_export.sentence_embedding import pooled_embeddings

    texts = list(dict.fromkeys([*queries, *ads]))
    at = {text: index for index, text in enumerate(texts)}
    vectors = pooled_embeddings(
        resolve_base(base), texts, tuple(COSINES), "embed texts" if show_progress else None
    )
    left, right = [at[query] for query in queries], [at[ad] for ad in ads]
    return {
        name: (vectors[pooling][left] * vectors[pooling][right]).sum(axis=1).astype(np.float64)
        for pooling, name in COSINES.items()
    }
