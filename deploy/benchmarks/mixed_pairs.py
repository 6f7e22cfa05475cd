"""One traffic for all benchmarks: queries with ads whose pair lengths are spread evenly.

The same seed gives the same requests. Every query comes once, so no pair comes twice and no cache
of pairs has anything to answer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from tokenizers import Tokenizer

from deploy.loadtest.ad_vocabulary import INTENTS, PROMISES, TOPICS
from service.scoring.encoding import PairEncoder

SHORTEST_TOKENS = 8
LONGEST_TOKENS = 64
QUERY_TOKENS = (3, 4)  # leaves the ad of the shortest pair a token or two
MAX_TRIES = 1000  # to make a text that was not there before


@dataclass(frozen=True, slots=True)
class MixedRequest:
    """One query and the texts of its ads."""

    query: str
    ads: list[str]


def mixed_requests(
    tokenizer: Tokenizer,
    seed: int,
    n_requests: int,
    n_ads: int,
    longest_tokens: int = LONGEST_TOKENS,
) -> list[MixedRequest]:
    """Requests whose pairs have 8 to 64 tokens, each length equally often; 36 on average.

    Args:
        tokenizer: The model's own, of a kind that tokenizes words one by one (WordPiece).
            Its truncation and padding are switched off.
        seed: Decides everything.
        n_requests: Queries, all different.
        n_ads: Ads of each; the same ad does not come twice in a request.
        longest_tokens: Of a pair, in place of 64.

    Raises:
        ValueError: The tokenizer does not make that many different texts of these lengths.
    """
    rng = random.Random(seed)  # noqa: S311  # the same traffic in every run
    encoder = PairEncoder(tokenizer, longest_tokens)
    writer = _Writer(tokenizer, rng)
    n_special = _n_special_tokens(encoder)
    lengths = _even_lengths(rng, longest_tokens)
    queries: set[str] = set()
    requests = []
    for _ in range(n_requests):
        n_query = rng.choice(QUERY_TOKENS)
        query = writer.write(n_query, queries)
        wanted = [next(lengths) for _ in range(n_ads)]
        ads: set[str] = set()
        texts = [writer.write(length - n_special - n_query, ads) for length in wanted]
        if [pair.length_tokens for pair in encoder.encode(query, texts)] != wanted:
            raise ValueError("the tokenizer does not tokenize words one by one")
        requests.append(MixedRequest(query, texts))
    return requests


class _Writer:
    """Writes texts of an exact number of tokens."""

    def __init__(self, tokenizer: Tokenizer, rng: random.Random) -> None:
        self._rng = rng
        self._words = sorted(_vocabulary())
        encodings = tokenizer.encode_batch(self._words, add_special_tokens=False)
        self._n_tokens = {
            word: len(one.ids) for word, one in zip(self._words, encodings, strict=True)
        }
        self._short_words = [word for word in self._words if self._n_tokens[word] == 1]
        if not self._short_words:
            raise ValueError("the tokenizer has no whole word of the vocabulary")

    def write(self, n_tokens: int, seen: set[str]) -> str:
        """A text that is not in `seen`, and is afterwards."""
        for _ in range(MAX_TRIES):
            text = self._attempt(n_tokens)
            if text not in seen:
                seen.add(text)
                return text
        raise ValueError(f"no more different texts of {n_tokens} tokens")

    def _attempt(self, n_tokens: int) -> str:
        words: list[str] = []
        while n_tokens > 0:
            word = self._rng.choice(self._words)
            if self._n_tokens[word] > n_tokens:
                word = self._rng.choice(self._short_words)
            words.append(word)
            n_tokens -= self._n_tokens[word]
        return " ".join(words)


def _vocabulary() -> set[str]:
    phrases = [*INTENTS, *PROMISES]
    for topic in TOPICS:
        phrases += [*topic.products, *topic.qualities, *topic.purposes, *topic.brands]
    return {word for phrase in phrases for word in phrase.split()}


def _n_special_tokens(encoder: PairEncoder) -> int:
    [pair] = encoder.encode("a", ["b"])
    return pair.length_tokens - 2


def _even_lengths(rng: random.Random, longest_tokens: int) -> Iterator[int]:
    """All lengths in random order, again and again."""
    lengths = list(range(SHORTEST_TOKENS, longest_tokens + 1))
    while True:
        rng.shuffle(lengths)
        yield from lengths
