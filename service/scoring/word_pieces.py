"""WordPiece by dictionary: most words of a text are looked up instead of cut into pieces again.

BERT's pre-tokenizer splits a text at white space and around punctuation, and WordPiece cuts each
word by itself, so a word has the same pieces wherever it stands (Wu et al. 2016, arXiv 1609.08144,
section 4.1). For printable ASCII the splitting is one regular expression. All else, and every
word's first pieces, come from the tokenizers library: this is a memory of its answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from tokenizers import Tokenizer

MAX_WORDS = 100_000
"""Words remembered, the vocabulary's own among them; about 15 MB. Others are cut every time."""

MAX_WORD_CHARS = 40

CASED = re.compile(r"[A-Za-z0-9]+|[^A-Za-z0-9 ]")
UNCASED = re.compile(r"[a-z0-9]+|[^a-z0-9 ]")


class WordPieces:
    """Token ids of printable ASCII texts, from the pieces of their words."""

    def __init__(self, cut: Callable[[str], list[int]], words: dict[str, list[int]], *,
                 lowercase: bool) -> None:  # fmt: skip
        """Remember.

        Args:
            cut: The library's ids of a text.
            words: What is known already.
            lowercase: The tokenizer makes no difference of case.
        """
        self._cut = cut
        self._words = words
        self._lowercase = lowercase
        self._split = (UNCASED if lowercase else CASED).findall

    def ids(self, text: str) -> list[int] | None:
        """The ids of a text; None where it is not printable ASCII."""
        if not (text.isascii() and text.isprintable()):
            return None
        ids: list[int] = []
        known = self._words
        for word in self._split(text.lower() if self._lowercase else text):
            pieces = known.get(word)
            ids += self._pieces(word) if pieces is None else pieces
        return ids

    def _pieces(self, word: str) -> list[int]:
        pieces = self._cut(word)
        if len(word) <= MAX_WORD_CHARS and len(self._words) < MAX_WORDS:
            self._words[word] = pieces
        return pieces


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

    def cut(word: str) -> list[int]:
        return list(tokenizer.encode(word, add_special_tokens=False).ids)

    return WordPieces(cut, words, lowercase=lowercase)
