"""Special tokens that a text can spell although the tokenizer was told to read them as text.

A Unigram vocabulary holds "</s>" and "<pad>" as pieces like any other, and XLM-R's cutter takes
them where they are written: an ad could end its own segment.
"""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models


class SpelledSpecials:
    """Takes such tokens out of what the tokenizer made of a text."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Find them: those that the tokenizer makes of their own text, alone or beside others.

        In a Unigram model whether a piece is taken depends on what stands around it, so there
        all of them are.

        Args:
            tokenizer: With `encode_special_tokens` on.
        """
        specials = {
            number: token.content
            for number, token in tokenizer.get_added_tokens_decoder().items()
            if token.special
        }
        unknown = _unknown_id(tokenizer)
        unigram = isinstance(tokenizer.model, models.Unigram)
        found = [
            number
            for number, text in specials.items()
            if number != unknown and (unigram or _is_spelled(tokenizer, text, number))
        ]
        self._ids = np.array(sorted(found), dtype=np.int32)
        self._unknown = unknown

    def without(self, ids: NDArray[np.int32]) -> NDArray[np.int32]:
        """The same tokens, with each spelled special one unknown; or left out, if nothing is."""
        if not self._ids.size:
            return ids
        if self._unknown is None:
            return ids[self.stays(ids)]
        return np.where(np.isin(ids, self._ids), np.int32(self._unknown), ids)

    def stays(self, ids: NDArray[np.int32]) -> NDArray[np.bool_]:
        """(t,) whether each of the tokens has a place in what `without` gives."""
        if self._unknown is None:
            return ~np.isin(ids, self._ids)
        return np.ones(len(ids), np.bool_)


def _is_spelled(tokenizer: Tokenizer, text: str, number: int) -> bool:
    return any(
        number in tokenizer.encode(probe, add_special_tokens=False).ids
        for probe in (text, f"a{text}", f"{text}a", f"a {text} a")
    )


def _unknown_id(tokenizer: Tokenizer) -> int | None:
    """The token of what the tokenizer does not know; None where it knows everything."""
    model = tokenizer.model
    if isinstance(model, models.Unigram):  # the library shows this one only in the file
        number: int | None = json.loads(tokenizer.to_str())["model"]["unk_id"]
        return number
    text = getattr(model, "unk_token", None)
    return None if text is None else tokenizer.token_to_id(text)
