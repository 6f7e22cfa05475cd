"""Texts with some of their words swapped for others of like meaning, to teach from few texts.

A teacher has an opinion on any text, so a student need not wait for more of them: "red nike shoes"
becomes "blue nike shoes" or "red adidas shoes", a near miss of the ads that it was a hit for. What
a word is swapped for comes from the teacher's own word vectors.

Source: Jiao et al. 2020 (TinyBERT), section 3.2, algorithm 1: words are replaced, with probability
0.4 each, by one of the 15 nearest in an embedding; theirs is GloVe for words of several tokens,
which stay as they are here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

N_NEIGHBOURS = 15
SWAP_PROBABILITY = 0.3
CHUNK_WORDS = 512  # rows of the similarity matrix at a time


class Rewording:
    """Swaps words that are one token of the vocabulary, and leaves all others."""

    def __init__(self, vocabulary: Mapping[str, int], vectors: NDArray[np.float32]) -> None:
        """Take the words of a vocabulary that can be swapped: letters only, three or more.

        Args:
            vocabulary: Token ids by token.
            vectors: (v, d) the teacher's word vectors, by token id.
        """
        self._words = sorted(word for word in vocabulary if word.isalpha() and len(word) > 2)
        self._number_of = {word: number for number, word in enumerate(self._words)}
        rows = vectors[[vocabulary[word] for word in self._words]].astype(np.float32)
        self._vectors = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        self._neighbours: dict[int, NDArray[np.int64]] = {}

    def learn(self, texts: Sequence[str]) -> None:
        """Find the neighbours of all words of the texts, which `reword` may then be asked about."""
        asked = {word for text in texts for word in text.lower().split()}
        known = {self._number_of[word] for word in asked if word in self._number_of}
        new = sorted(known - self._neighbours.keys())
        for start in range(0, len(new), CHUNK_WORDS):
            some = new[start : start + CHUNK_WORDS]
            cosines = self._vectors[some] @ self._vectors.T  # (c, w)
            cosines[np.arange(len(some)), some] = -1  # not the word itself
            n_kept = min(N_NEIGHBOURS, len(self._words) - 1)
            nearest = np.argpartition(-cosines, n_kept - 1, axis=1)[:, :n_kept]
            self._neighbours.update(zip(some, nearest, strict=True))

    def reword(self, text: str, rng: np.random.Generator) -> str:
        """The text with words swapped: each with probability 0.3, and one where any can be."""
        words = text.split()
        places = [
            place
            for place, word in enumerate(words)
            if self._number_of.get(word.lower(), -1) in self._neighbours
        ]
        if not places:
            return text
        swapped = [place for place in places if rng.random() < SWAP_PROBABILITY]
        for place in swapped or [places[int(rng.integers(len(places)))]]:
            neighbours = self._neighbours[self._number_of[words[place].lower()]]
            words[place] = self._words[int(rng.choice(neighbours))]
        return " ".join(words)
