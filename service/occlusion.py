"""Which words carry a pair's score: each one is left out in turn, and the pair scored again.

Source: Zeiler and Fergus 2014, "Visualizing and understanding convolutional networks" (arXiv
1311.2901), section 4.2, who cover parts of an image. Here a word is taken out of the text and the
text is encoded anew, so what is scored is an input as the model meets them, and not one with a
hole. Pure: the plan is a request like any other, its answer is turned into differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from service.domain import Ad, AdScore, PairStatus, Priority, ScoreQuery
from service.pair_seen import PairSeen, SideSeen, Word

MAX_WORDS_PER_SIDE = 64
"""Words of the query, and of the ad, that are left out at most; a pair then costs 129."""


@dataclass(frozen=True, slots=True)
class WordEffect:
    """What a word does for the score.

    Attributes:
        word: The word.
        status: Of the pair without it; None where that was not asked for.
        score_drop: The pair's score less its score without the word: above 0 the word speaks for
            relevance, below 0 against it. None without a score.
        logit_drop: Likewise the log-odds before calibration.
    """

    word: Word
    status: PairStatus | None
    score_drop: float | None = None
    logit_drop: float | None = None


def without(text: str, word: Word) -> str:
    """The text less a word: other words stay apart, and no space is left over."""
    before, after = text[: word.start], text[word.end :]
    open_before = not before or before[-1].isspace()
    open_after = not after or after[0].isspace()
    if not open_before and not open_after:
        return f"{before} {after}"
    if open_before and open_after:
        return before + after[1:] if after else before[:-1]
    return before + after


@dataclass(frozen=True, slots=True)
class Occlusion:
    """A pair, and how many words of each side are left out in turn: the first ones.

    Attributes:
        seen: The pair as the model reads it.
        n_query_words: Of the query.
        n_ad_words: Of the ad.
    """

    seen: PairSeen
    n_query_words: int
    n_ad_words: int

    def score_query(self, ad: Ad, request_id: str, timeout_s: float) -> ScoreQuery:
        """The pair and all that it becomes, as one request of bulk work.

        The pair itself comes first, then it without each word of the ad, then without each of the
        query. A side of one word is left empty.

        Args:
            ad: The ad as it was sent.
            request_id: Of the request.
            timeout_s: For all of it.
        """
        query, ad_text = self.seen.query, self.seen.ad
        shorter_ads = [
            Ad(ad.id, text=without(ad_text.text, word)) for word in ad_text.words[: self.n_ad_words]
        ]
        shorter_queries = [without(query.text, word) for word in query.words[: self.n_query_words]]
        return ScoreQuery(
            request_id=request_id,
            query=query.text,
            ads=(ad, *shorter_ads, *[ad] * len(shorter_queries)),
            timeout_s=timeout_s,
            priority=Priority.BATCH,
            queries=(query.text, *[query.text] * len(shorter_ads), *shorter_queries),
            probe=True,
        )

    def effects(
        self, scores: Sequence[AdScore], margins: NDArray[np.float64]
    ) -> tuple[list[WordEffect], list[WordEffect]]:
        """What each word does.

        Args:
            scores: The answer to `score_query`; its first has a score.
            margins: (n,) its log-odds before calibration.

        Returns:
            (those of the query's words, those of the ad's), all words in order.
        """
        drops = list(_drops(scores, margins))
        n_ad = self.n_ad_words
        return (
            list(_effects(self.seen.query, drops[n_ad:])),
            list(_effects(self.seen.ad, drops[:n_ad])),
        )


Drop = tuple[PairStatus, float | None, float | None]


def occlude(seen: PairSeen, max_pairs: int) -> Occlusion:
    """Choose the words to leave out.

    Args:
        seen: The pair.
        max_pairs: One request may have, at least 1.
    """
    most = min(MAX_WORDS_PER_SIDE, (max_pairs - 1) // 2)
    return Occlusion(seen, min(most, len(seen.query.words)), min(most, len(seen.ad.words)))


def _drops(scores: Sequence[AdScore], margins: NDArray[np.float64]) -> Iterator[Drop]:
    whole, whole_logit = scores[0].score, float(margins[0])
    for less, logit in zip(scores[1:], margins[1:].tolist(), strict=True):
        if whole is None or less.score is None:
            yield less.status, None, None
        else:
            yield less.status, whole - less.score, whole_logit - logit


def _effects(side: SideSeen, drops: Sequence[Drop]) -> Iterator[WordEffect]:
    for word, drop in zip_longest(side.words, drops):
        yield WordEffect(word, *(drop or (None,)))
