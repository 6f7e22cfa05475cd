"""From text to the model's token ids: `[CLS] query [SEP] ad [SEP]` and its relatives.

The query is tokenized once per request and joined with each ad's ids, instead of once per pair.
What the tokenizer's post-processor would put around the two sides is learned from it at start-up
(`PairFrame`), so that every family of encoders is served by the same few lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from service.scoring.shrunk_text import ShrunkText
from service.scoring.spelled_specials import SpelledSpecials
from service.scoring.word_pieces import word_pieces

CHARS_A_TOKEN = 24  # more than any text of words has
BOUNDARY_TOKENS = 128  # the last word of a beginning may have been cut: it has no more pieces

Ids = NDArray[np.int64]
TextIds = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPair:
    """One pair as the model reads it.

    Attributes:
        ids: (t,) token ids with the special ones.
        type_ids: (t,) segment of each token: 0 around the query, 1 around the ad for BERT.
        truncated: Some of the text did not fit.
    """

    ids: Ids
    type_ids: Ids
    truncated: bool

    @property
    def length_tokens(self) -> int:
        """Tokens with the special ones; what the pair costs before padding."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token stands in its text: `text[start:end]`, within the word of that number."""

    start: int
    end: int
    word: int


@dataclass(frozen=True, slots=True)
class PairFrame:
    """The special tokens before, between and after the two sides, and all segment ids."""

    before: tuple[int, ...]
    between: tuple[int, ...]
    after: tuple[int, ...]
    before_types: tuple[int, ...]
    between_types: tuple[int, ...]
    after_types: tuple[int, ...]
    query_type: int
    ad_type: int

    @property
    def n_special_tokens(self) -> int:
        """Tokens of a pair that are neither query nor ad."""
        return len(self.before) + len(self.between) + len(self.after)


def learn_frame(tokenizer: Tokenizer) -> PairFrame:
    """Read off what the tokenizer puts around a pair, by letting it encode a known one.

    Raises:
        ValueError: It changes the two sides' own tokens when it joins them, or cannot make
            tokens of plain letters at all.
    """
    try:
        query = tokenizer.encode("a", add_special_tokens=False)
        ad = tokenizer.encode("b", add_special_tokens=False)
        joined = tokenizer.encode("a", "b")
    except Exception as error:  # the library raises bare Exception
        raise ValueError(f"the tokenizer makes no tokens of plain letters: {error}") from error
    n_query, n_ad = len(query.ids), len(ad.ids)
    sequence = joined.sequence_ids  # None at special tokens, else 0 or 1
    if n_query == 0 or sequence.count(0) != n_query or sequence.count(1) != n_ad or n_ad == 0:
        raise ValueError("the tokenizer does not join a query and an ad as two segments")
    query_at, ad_at = sequence.index(0), sequence.index(1)
    query_end, ad_end = query_at + n_query, ad_at + n_ad
    if joined.ids[query_at:query_end] != query.ids or joined.ids[ad_at:ad_end] != ad.ids:
        raise ValueError("the tokenizer's post-processor changes the tokens of the two sides")
    if query_end > ad_at:
        raise ValueError("the tokenizer puts the second text before the first")
    ids, types = joined.ids, joined.type_ids
    return PairFrame(
        before=tuple(ids[:query_at]),
        between=tuple(ids[query_end:ad_at]),
        after=tuple(ids[ad_end:]),
        before_types=tuple(types[:query_at]),
        between_types=tuple(types[query_end:ad_at]),
        after_types=tuple(types[ad_end:]),
        query_type=types[query_at],
        ad_type=types[ad_at],
    )


def fit_lengths(n_query: int, n_ad: int, room_tokens: int) -> tuple[int, int]:
    """How many tokens of the query and of the ad are kept.

    The ad is cut first, from its end, down to half of the room; only a query longer than the
    other half gives way too. So neither side ever vanishes.

    Args:
        n_query: Tokens of the query.
        n_ad: Tokens of the ad.
        room_tokens: Tokens that the model takes, less the special ones.

    Returns:
        (query tokens kept, ad tokens kept), together at most `room_tokens`.
    """
    if n_query + n_ad <= room_tokens:
        return n_query, n_ad
    keep_query = min(n_query, max(room_tokens - n_ad, room_tokens // 2))
    return keep_query, min(n_ad, room_tokens - keep_query)


class PairEncoder:
    """Turns one query and its ads into encoded pairs, by the model's own tokenizer.

    Special tokens spelled out in a text ("[SEP]") are treated as text: an ad cannot end its own
    segment or pose as the query.

    Attributes:
        frame: What stands around the two sides.
        max_length_tokens: Longest pair that it makes.
    """

    def __init__(self, tokenizer: Tokenizer, max_length_tokens: int) -> None:
        """Take over the tokenizer: its own truncation and padding are switched off.

        Args:
            tokenizer: A fast tokenizer with the pair post-processor of its model.
            max_length_tokens: Longest pair that the model was trained or allowed to read.

        Raises:
            ValueError: The tokenizer cannot join pairs, or leaves no room for both sides.
        """
        tokenizer.no_truncation()
        tokenizer.no_padding()
        tokenizer.encode_special_tokens = True
        if getattr(tokenizer.model, "dropout", None):
            tokenizer.model.dropout = None  # of training: the same text must give the same tokens
        self._tokenizer = tokenizer
        self._words = word_pieces(tokenizer)
        self._shrunk = ShrunkText(self._words.longest_word_chars) if self._words else None
        self.frame = learn_frame(tokenizer)
        self._specials = SpelledSpecials(tokenizer)
        self._room_tokens = max_length_tokens - self.frame.n_special_tokens
        if self._room_tokens < 2:
            raise ValueError(f"max length {max_length_tokens} leaves no room for a query and an ad")
        self.max_length_tokens = max_length_tokens

    @classmethod
    def from_file(cls, path: Path, max_length_tokens: int) -> PairEncoder:
        """An encoder from a `tokenizer.json`.

        Raises:
            ValueError: The file is not a tokenizer, or not one for pairs.
        """
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception on a bad file
            raise ValueError(f"{path.name} is not a tokenizer: {error}") from error
        return cls(tokenizer, max_length_tokens)

    def encode(self, query: str, ads: Sequence[str]) -> list[EncodedPair]:
        """Encode each ad against the query; order is kept. The texts may be of any length."""
        query_ids, *ads_ids = self.tokenize([query, *ads])
        return [self.join(query_ids, ad_ids) for ad_ids in ads_ids]

    def tokenize(self, texts: Sequence[str]) -> list[TextIds]:
        """The token ids of each text by itself, without special tokens. Thread-safe.

        Of a text much longer than the model reads only a beginning is tokenized, which has more
        tokens than are kept; so the pair is the same as if all were. (But for a BERT tokenizer a
        text ends where only marks without letters, or the like, follow for thousands of
        characters.)
        """
        enough = self.max_length_tokens + BOUNDARY_TOKENS
        limit_chars = CHARS_A_TOKEN * enough
        made = self._cut([text[:limit_chars] for text in texts])
        for index, text in enumerate(texts):
            if len(text) > limit_chars and len(made[index]) < enough:  # white space, or odd words
                [made[index]] = self._cut([self._with_enough_tokens(text, enough)])
        return made

    def _with_enough_tokens(self, text: str, enough: int) -> str:
        if self._shrunk is None:
            return text
        limit_chars = self._shrunk.word_chars * enough
        return self._shrunk(text, limit_chars)[:limit_chars]

    def _cut(self, texts: Sequence[str]) -> list[TextIds]:
        words = self._words
        known = words.ids(texts) if words else [None] * len(texts)
        unknown = [text for text, ids in zip(texts, known, strict=True) if ids is None]
        # In one call: only the batch call lets go of the interpreter lock.
        encodings = iter(self._tokenizer.encode_batch_fast(unknown, add_special_tokens=False))
        made = (np.array(next(encodings).ids, np.int32) if ids is None else ids for ids in known)
        return [self._specials.without(ids) for ids in made]

    def kept(self, n_query: int, n_ad: int) -> tuple[int, int]:
        """Of how many tokens of the query and of the ad a pair consists: see `fit_lengths`."""
        return fit_lengths(n_query, n_ad, self._room_tokens)

    def places(self, text: str) -> list[Place]:
        """Where the tokens that `tokenize` makes of the text stand in it. Thread-safe.

        All of the text is read, so of a very long one there are places of more tokens.
        """
        # The batch call: the other one, for a single text, holds the interpreter lock.
        [encoding] = self._tokenizer.encode_batch([text], add_special_tokens=False)
        stays = self._specials.stays(np.array(encoding.ids, np.int32))
        return [
            Place(start, end, word)
            for (start, end), word, has_place in zip(
                encoding.offsets, encoding.word_ids, stays.tolist(), strict=True
            )
            if has_place
        ]

    def token_text(self, token_id: int) -> str:
        """A token as the vocabulary spells it."""
        return str(self._tokenizer.id_to_token(token_id))

    def join(self, query_ids: TextIds, ad_ids: TextIds) -> EncodedPair:
        """One pair from the token ids of its two sides, cut to the model's longest."""
        frame = self.frame
        n_query, n_ad = self.kept(len(query_ids), len(ad_ids))
        query_at = len(frame.before)
        query_end = query_at + n_query
        ad_at = query_end + len(frame.between)
        ad_end = ad_at + n_ad
        n_tokens = ad_end + len(frame.after)
        ids, type_ids = np.empty(n_tokens, np.int64), np.empty(n_tokens, np.int64)
        ids[:query_at], type_ids[:query_at] = frame.before, frame.before_types
        ids[query_at:query_end], type_ids[query_at:query_end] = (
            query_ids[:n_query],
            frame.query_type,
        )
        ids[query_end:ad_at], type_ids[query_end:ad_at] = frame.between, frame.between_types
        ids[ad_at:ad_end], type_ids[ad_at:ad_end] = ad_ids[:n_ad], frame.ad_type
        ids[ad_end:], type_ids[ad_end:] = frame.after, frame.after_types
        return EncodedPair(ids, type_ids, n_query < len(query_ids) or n_ad < len(ad_ids))
