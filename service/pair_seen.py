"""One pair as the model reads it, as types: its tokens, its words, and what was cut off.

Nothing here knows tokenizers, ONNX or HTTP. Places in a text are counted in Unicode code points.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Side(enum.StrEnum):
    """Where a token comes from: one of the two texts, or the frame that the model puts around."""

    QUERY = "query"
    AD = "ad"
    SPECIAL = "special"


@dataclass(frozen=True, slots=True)
class Token:
    """One token; its index in the pair is its position.

    Attributes:
        text: As the vocabulary spells it.
        id: Its number there.
        segment: Segment id; None where the model is fed none.
        side: Where it comes from.
        start: First character of what it stands for, in its side's text; None for special tokens.
        end: One past the last.
    """

    text: str
    id: int
    segment: int | None
    side: Side
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """A word of one side: its text is that side's `text[start:end]`."""

    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class SideSeen:
    """One of the two texts.

    Attributes:
        text: All of it, as the model would read it if it had the room.
        words: Those of which the model reads at least a token, in order; they do not overlap.
        cut_at: Where the part begins that the model does not read; the text's length if none.
    """

    text: str
    words: tuple[Word, ...]
    cut_at: int

    @property
    def cut_text(self) -> str:
        """What the model does not read; empty where all fits."""
        return self.text[self.cut_at :]


@dataclass(frozen=True, slots=True)
class PairSeen:
    """One pair as it is fed to the model, special tokens included."""

    tokens: tuple[Token, ...]
    query: SideSeen
    ad: SideSeen
