"""Texts of pairs, made fit to be shown: they are whatever an advertiser or an attacker typed."""

from __future__ import annotations

import unicodedata

MAX_CHARS = 160

# Control, format (bidi overrides, zero width), surrogate, private use, unassigned.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def shown_text(text: str, max_chars: int = MAX_CHARS) -> str:
    """One line of at most about `max_chars`, with every invisible character spelled out.

    Runs of white space become one space. A direction override or a zero-width character becomes
    its code point in brackets, so that it is seen and has no effect. Not HTML-escaped.
    """
    one_line = " ".join(text[: 64 * max_chars].split())
    cut = one_line[:max_chars]
    spelled = "".join(_spelled(char) for char in cut)
    if len(one_line) > max_chars or len(text) > 64 * max_chars:
        return f"{spelled}… [{len(text):,} characters]"
    return spelled


def _spelled(char: str) -> str:
    return f"[U+{ord(char):04X}]" if unicodedata.category(char) in _INVISIBLE else char
