"""WordPiece by dictionary: most words of a text are looked up instead of cut into pieces again.

BERT's pre-tokenizer splits a text at white space and around punctuation, and WordPiece cuts each
word by itself, so a word has the same pieces wherever it stands (Wu et al. 2016, arXiv 1609.08144,
section 4.1). For printable ASCII the splitting is one regular expression. All else, and every
word's first pieces, come from the tokenizers library: this is a memory of its answers.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Ids = NDArray[np.int32]

RECENT_WORDS = 10_000
"""Words beside the vocabulary that are remembered at least; at most twice as many, some 10 MB."""

MAX_WORD_CHARS = 40
MAX_TEXT_CHARS = 2_000  # longer texts are the library's, which lets go of the interpreter lock

MAX_NEW_WORDS = 50
"""Texts with more unseen words between them are the library's: it cuts them faster as they are."""

CASED = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")
UNCASED = re.compile(r"[a-z0-9]+|[^a-z0-9 ]")


class WordPieces:
    """Token ids of printable ASCII texts, from the pieces of their words.

    Words that were seen lately are kept in two generations: when the younger is full the older is
    dropped. So no flood of odd words can fill the memory for good.
    """

    def __init__(
        self,
        cut: Callable[[list[str]], list[list[int]]],
        vocabulary: dict[str, list[int]],
        *,
        lowercase: bool,
        longest_word_chars: int = 100,
    ) -> None:
        """Remember.

        Args:
            cut: The library's ids of each of some texts.
            vocabulary: Words that are known for good.
            lowercase: The tokenizer makes no difference of case.
            longest_word_chars: It does not cut longer words: they are one unknown token.
        """
        self.longest_word_chars = longest_word_chars
        self._cut = cut
        # Ids as bytes: a fifth of the memory of lists of numbers, and faster to join.
        self._vocabulary = {word: _packed(ids) for word, ids in vocabulary.items()}
        self._younger: dict[str, bytes] = {}
        self._older: dict[str, bytes] = {}
        self._lowercase = lowercase
        self._split = (UNCASED if lowercase else CASED).findall

    def ids(self, texts: Sequence[str]) -> list[Ids | None]:
        """The ids of each text, not to be written to; None for those better left to the library."""
        split = [self._words(text) for text in texts]
        new: set[str] = set()
        for words in split:
            new.update(word for word in words or () if self._known(word) is None)
        if len(new) > MAX_NEW_WORDS:
            split = [None if words and new.intersection(words) else words for words in split]
        elif new:
            self._learn(list(new))
        return [None if words is None else self._joined(words) for words in split]

    def _words(self, text: str) -> list[str] | None:
        if len(text) > MAX_TEXT_CHARS or not (text.isascii() and text.isprintable()):
            return None
        words: list[str] = self._split(text.lower() if self._lowercase else text)
        return words if len(max(words, key=len, default="")) <= MAX_WORD_CHARS else None

    def _known(self, word: str) -> bytes | None:
        pieces = self._vocabulary.get(word) or self._younger.get(word)
        if pieces is None:
            pieces = self._older.get(word)
            if pieces is not None:
                self._younger[word] = pieces  # used: it stays for another generation
        return pieces

    def _learn(self, words: list[str]) -> None:
        if len(self._younger) >= RECENT_WORDS:
            self._older, self._younger = self._younger, {}
        self._younger.update(zip(words, map(_packed, self._cut(words)), strict=True))

    def _joined(self, words: list[str]) -> Ids:
        return np.frombuffer(b"".join([self._known(word) or b"" for word in words]), np.int32)


def _packed(ids: list[int]) -> bytes:
    return array("i", ids).tobytes()


def word_pieces(tokenizer: Tokenizer) -> WordPieces | None:
    """A memory for this tokenizer, filled with the words that are pieces by themselves.

    Returns:
        None where words are not cut one by one, as by byte-pair encodings and SentencePiece, or
        where the tokenizer has words of its user's own, which may contain anything.
    """
    facts = json.loads(tokenizer.to_str())
    model, normalizer = facts["model"], facts["normalizer"] or {}
    parts = (model["type"], normalizer.get("type"), (facts["pre_tokenizer"] or {}).get("type"))
    if parts != ("WordPiece", "BertNormalizer", "BertPreTokenizer"):
        return None
    if not all(token["special"] for token in facts["added_tokens"]):
        return None
    lowercase = bool(normalizer["lowercase"])
    is_word = (UNCASED if lowercase else CASED).fullmatch
    longest = model["max_input_chars_per_word"]
    words = {
        word: [number]
        for word, number in model["vocab"].items()
        if is_word(word) and word.isascii() and len(word) <= longest
    }

    def cut(words: list[str]) -> list[list[int]]:
        encodings = tokenizer.encode_batch_fast(words, add_special_tokens=False)
        return [encoding.ids for encoding in encodings]

    return WordPieces(cut, words, lowercase=lowercase, longest_word_chars=longest)
