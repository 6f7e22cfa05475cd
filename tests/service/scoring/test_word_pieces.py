from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from service.scoring.word_pieces import MAX_WORD_CHARS, WordPieces, word_pieces

PIECES = ["[UNK]", "[CLS]", "[SEP]", "run", "##ning", "shoe", "##s", "Shoe", "a", "b", "##b", "1",
          "##0", "-", "!", "$", "_", "'", "~", "[", "]", "sep", "cls", "x" * 101]  # fmt: skip


def a_tokenizer(*, lowercase: bool = True) -> Tokenizer:
    vocabulary = {piece: number for number, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]", "[UNK]"])
    tokenizer.encode_special_tokens = True
    return tokenizer


def remembered(tokenizer: Tokenizer) -> WordPieces:
    words = word_pieces(tokenizer)
    assert words is not None
    return words


TOKENIZERS = {low: a_tokenizer(lowercase=low) for low in (True, False)}
WORDS = {low: remembered(tokenizer) for low, tokenizer in TOKENIZERS.items()}
ad_like = st.lists(
    st.sampled_from(
        ["running", "Shoes", "SHOE", "[SEP]", "$10!", "a-b", "don't", "  ", "aab", "~_"]
    )
).map(" ".join)


@pytest.mark.parametrize("lowercase", [True, False])
@given(text=st.one_of(ad_like, st.text(), st.text(st.characters(max_codepoint=127))))
def test_the_ids_of_any_text_are_the_librarys(lowercase: bool, text: str) -> None:
    expected = TOKENIZERS[lowercase].encode(text, add_special_tokens=False).ids
    for _ in range(2):  # cut first, remembered then
        assert WORDS[lowercase].ids(text) in (None, expected)


@pytest.mark.parametrize("text", ["", "running shoes", "[SEP]", "  a  ", "x" * 101, "!" * 300])
def test_printable_ascii_needs_no_library_call_for_whole_texts(text: str) -> None:
    expected = TOKENIZERS[True].encode(text, add_special_tokens=False).ids
    assert WORDS[True].ids(text) == expected


@pytest.mark.parametrize("text", ["é", "鞋", "a\tb", "a\x00b", "a\nb", "\u00a0", "\x7f"])
def test_everything_else_is_left_to_the_library(text: str) -> None:
    assert WORDS[True].ids(text) is None


def test_a_word_is_cut_once() -> None:
    calls: list[str] = []

    def cut(word: str) -> list[int]:
        calls.append(word)
        return [len(word)]

    words = WordPieces(cut, {}, lowercase=True)
    assert words.ids("Red red bag") == [3, 3, 3]
    assert words.ids("RED") == [3]
    assert calls == ["red", "bag"]


def test_the_memory_is_bounded_in_words_and_in_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.scoring.word_pieces.MAX_WORDS", 2)
    words = WordPieces(lambda word: [len(word)], {}, lowercase=True)
    assert words.ids(f"one {'y' * (MAX_WORD_CHARS + 1)} two three") == [3, 41, 3, 5]
    assert set(words._words) == {"one", "two"}


def test_the_default_kind_of_tokenizer_is_remembered(tiny_bundle_int8: Path) -> None:
    assert word_pieces(Tokenizer.from_file(str(tiny_bundle_int8 / "tokenizer.json"))) is not None


def test_tokenizers_that_do_not_cut_word_by_word_are_left_alone() -> None:
    other = a_tokenizer()
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    assert word_pieces(other) is None
    byte_pairs = Tokenizer(models.BPE())
    assert word_pieces(byte_pairs) is None


def test_a_tokenizer_with_words_of_its_users_own_is_left_alone() -> None:
    tokenizer = a_tokenizer()
    tokenizer.add_tokens(["shoe - a"])
    assert json.loads(tokenizer.to_str())["added_tokens"][-1]["content"] == "shoe - a"
    assert word_pieces(tokenizer) is None
