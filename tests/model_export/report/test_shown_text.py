from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.report.shown_text import shown_text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("tab\tand\n\n new line", "tab and new line"),
        ("left \u202eright", "left [U+202E]right"),
        ("zero\u200bwidth\x07", "zero[U+200B]width[U+0007]"),
        ("half \ud83d", "half [U+D83D]"),
        ("跑步鞋 مرحبا", "跑步鞋 مرحبا"),
        ("", ""),
    ],
)
def test_invisible_characters_are_spelled_out(text: str, shown: str) -> None:
    assert shown_text(text) == shown


def test_long_texts_are_cut_and_say_how_long_they_were() -> None:
    shown = shown_text("word " * 2000)
    assert shown.endswith("… [10,000 characters]")
    assert len(shown) < 200
    assert shown_text("x" * 10, max_chars=10) == "x" * 10


@given(st.text(alphabet=st.characters()))
def test_what_is_shown_is_one_line_of_visible_characters(text: str) -> None:
    categories = {unicodedata.category(char) for char in shown_text(text)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
