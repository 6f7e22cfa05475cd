"""A long text without what makes no tokens of its own: the ends of endless words, and gaps.

Of most texts a beginning is enough, since it has more tokens than a model reads. What has few
tokens for its length would have to be read to its end; a megabyte without a space takes a
tokenizer seconds and is one unknown token.
"""

from __future__ import annotations

import re

GAP = re.compile(r"[ \t\n\r]{2,}")  # what else Python calls white space BERT may drop
PIECE_CHARS = 65_536  # a regular expression holds the interpreter lock: a millisecond or two


class ShrunkText:
    """Shortens texts for tokenizers that split at white space and do not know endless words."""

    def __init__(self, longest_word_chars: int) -> None:
        """Prepare.

        Args:
            longest_word_chars: Longer words are one unknown token, however long they are.
        """
        # Letters and digits of ASCII: no tokenizer of words splits, joins or drops them. A word
        # with others beside them only becomes shorter by its middle, and stays too long.
        letters, kept = "[A-Za-z0-9]", longest_word_chars + 1
        self._endless = re.compile(f"(?<!{letters})({letters}{{{kept}}}){letters}+")
        self.word_chars = kept + 1

    def __call__(self, text: str, enough_chars: int) -> str:
        """A text with the same tokens, or the beginning of one: at least `enough_chars` of it."""
        shrunk, length = [], 0
        for start in range(0, len(text), PIECE_CHARS):
            piece = GAP.sub(" ", text[start : start + PIECE_CHARS])
            piece = self._endless.sub(r"\1", piece)
            shrunk.append(piece)
            length += len(piece)
            if length >= enough_chars:
                break
        return "".join(shrunk)
