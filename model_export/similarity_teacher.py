"""Weak labels for pairs that nobody judged, from the base model's own sentence embeddings.

A few thousand human labels teach a cross-encoder little about the many ways in which a query and
an ad can miss each other; it learns them by heart instead. The base model was trained to embed
texts so that related ones are close, so the cosine of query and ad is a free label for any pair.
A cross-encoder that has learnt it first makes far better use of the human labels
(figures: default_model/README.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from model_export.logistic import fit_logistic
from model_export.sentence_embedding import embed_texts
from model_export.training import TargetRow

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

NEAR_RANK = 60
"""Ads up to this rank by cosine are near misses or hits; on the way to FAR_RANK, merely related."""

FAR_RANK = 1500

SPAN_WORDS = 4
"""Longest pseudo-query: three of four queries in the training files have up to four words."""


class SimilarityTeacher:
    """Says for any (query, ad text) how probable it is that they belong together."""

    def __init__(self, base: Path, rows: Sequence[TargetRow], *, show_progress: bool) -> None:
        """Embed the texts of labelled rows and fit the log-odds of their targets on the cosine.

        Args:
            base: Folder of a BERT sentence encoder with its tokenizer.
            rows: Labelled rows; their ad texts are the ads that `make_rows` pairs up.
            show_progress: Whether to draw progress bars.
        """
        self._base = base
        self._show_progress = show_progress
        self.queries = list(dict.fromkeys(row.query for row in rows))
        self.ad_texts = list(dict.fromkeys(row.ad_text for row in rows))
        self._query_vectors = self._embed(self.queries, "embed queries")
        self._ad_vectors = self._embed(self.ad_texts, "embed ads")
        query_at = {query: index for index, query in enumerate(self.queries)}
        ad_at = {text: index for index, text in enumerate(self.ad_texts)}
        left = self._query_vectors[[query_at[row.query] for row in rows]]
        right = self._ad_vectors[[ad_at[row.ad_text] for row in rows]]
        cosines = (left * right).sum(axis=1)
        self._slope, self._intercept = fit_logistic(
            cosines.astype(np.float64), np.array([row.target for row in rows])
        )
        self._row_scores = self._to_scores(cosines)  # (n,) in the order of `rows`

    def blend_into(self, rows: Sequence[TargetRow], share: float) -> list[TargetRow]:
        """The labelled rows of the start with a share of the teacher's score in their targets.

        It keeps the model from learning by heart what the teacher finds implausible.
        """
        return [
            TargetRow(row.query, row.ad_text, (1 - share) * row.target + share * float(score))
            for row, score in zip(rows, self._row_scores, strict=True)
        ]

    def make_rows(
        self, n_rows: int, rows_per_query: int, pseudo_query_share: float, seed: int
    ) -> list[TargetRow]:
        """New pairs of known queries and ads, labelled by the teacher, in random order.

        Of a query's rows, six in ten are ads that are near it, two related, two far away. Pseudo-
        queries are spans of words out of the ads, so that the pairs are not all about the
        few queries of the training files.

        Args:
            n_rows: Rows wanted; fewer come back when there are too few ads or words in them.
            rows_per_query: Rows that share a query.
            pseudo_query_share: Part of the rows whose query is a span of an ad's words.
            seed: Of all random choices.
        """
        rng = np.random.default_rng(seed)
        n_pseudo = round(n_rows * pseudo_query_share / rows_per_query)
        spans = word_spans(self.ad_texts, n_pseudo, rng)
        span_vectors = self._embed(spans, "embed pseudo-queries")
        n_per_real = -(-(n_rows - len(spans) * rows_per_query) // len(self.queries))
        rows = self._pair_up(spans, span_vectors, rows_per_query, rng)
        rows += self._pair_up(self.queries, self._query_vectors, n_per_real, rng)
        return [rows[index] for index in rng.permutation(len(rows))[:n_rows]]

    def _pair_up(
        self,
        queries: Sequence[str],
        vectors: NDArray[np.float32],
        n_per_query: int,
        rng: np.random.Generator,
    ) -> list[TargetRow]:
        n_related = n_far = n_per_query // 5
        rows = []
        for query, vector in zip(queries, vectors, strict=True):
            cosines = self._ad_vectors @ vector
            ranking = np.argsort(-cosines)
            zones = (ranking[:NEAR_RANK], ranking[NEAR_RANK:FAR_RANK], ranking[FAR_RANK:])
            counts = (n_per_query - n_related - n_far, n_related, n_far)
            chosen = np.concatenate(
                [
                    rng.choice(zone, min(count, len(zone)), replace=False)
                    for zone, count in zip(zones, counts, strict=True)
                ]
            )
            scores = self._to_scores(cosines[chosen])
            rows += [
                TargetRow(query, self.ad_texts[index], float(score))
                for index, score in zip(chosen, scores, strict=True)
            ]
        return rows

    def _to_scores(self, cosines: NDArray[np.float32]) -> NDArray[np.float64]:
        log_odds = self._slope * cosines.astype(np.float64) + self._intercept
        return np.asarray(1 / (1 + np.exp(-log_odds)), dtype=np.float64)

    def _embed(self, texts: Sequence[str], what: str) -> NDArray[np.float32]:
        return embed_texts(self._base, texts, what if self._show_progress else None)


def word_spans(texts: Sequence[str], n_spans: int, rng: np.random.Generator) -> list[str]:
    """At most `n_spans` different pseudo-queries: one to four words in a row of as many texts."""
    spans: dict[str, None] = {}  # a set that keeps its order
    for index in rng.permutation(len(texts))[:n_spans]:
        words = texts[index].split()
        n_words = min(int(rng.integers(1, SPAN_WORDS + 1)), len(words))
        start = int(rng.integers(0, len(words) - n_words + 1))
        span = " ".join(words[start : start + n_words]).strip(" ,.-()\"'").lower()
        if len(span) > 3:  # not "-", "the", "15"
            spans[span] = None
    return list(spans)
