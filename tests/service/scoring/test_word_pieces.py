from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from service.scoring.word_pieces import MAX_NEW_WORDS, WordPieces, word_pieces

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


def ids_of(words: WordPieces, *texts: str) -> list[list[int] | None]:
    return [None if ids is None else ids.tolist() for ids in words.ids(texts)]


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
        assert ids_of(WORDS[lowercase], text) in ([None], [expected])


@pytest.mark.parametrize("text", ["", "running shoes", "[SEP]", "  a  ", "x" * 40, "!" * 300])
def test_printable_ascii_needs_no_library_call_for_whole_texts(text: str) -> None:
    expected = TOKENIZERS[True].encode(text, add_special_tokens=False).ids
    assert ids_of(WORDS[True], text) == [expected]


@pytest.mark.parametrize(
    "text", ["é", "鞋", "a\tb", "a\x00b", "a\nb", "\u00a0", "\x7f", "x" * 101, "a " * 1001]
)
def test_everything_else_is_left_to_the_library(text: str) -> None:
    assert WORDS[True].ids(["a", text, "b"])[1] is None


class Lengths:
    """A library that makes one token of a word: its length."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def __call__(self, words: list[str]) -> list[list[int]]:
        self.calls.append(sorted(words))
        return [[len(word)] for word in words]


def test_words_are_cut_once_and_all_that_are_new_in_one_call() -> None:
    cut = Lengths()
    words = WordPieces(cut, {}, lowercase=True)
    assert ids_of(words, "Red red bag", "a red shoe") == [[3, 3, 3], [1, 3, 4]]
    assert ids_of(words, "RED") == [[3]]
    assert cut.calls == [["a", "bag", "red", "shoe"]]


def test_texts_of_many_new_words_are_left_to_the_library_and_not_remembered() -> None:
    cut = Lengths()
    words = WordPieces(cut, {"known": [7]}, lowercase=True)
    odd = " ".join(f"w{i}" for i in range(MAX_NEW_WORDS + 1))
    assert ids_of(words, odd, "known") == [None, [7]]
    assert cut.calls == []


def test_a_flood_of_odd_words_neither_fills_the_memory_nor_empties_it_of_what_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("service.scoring.word_pieces.RECENT_WORDS", 10)
    cut = Lengths()
    words = WordPieces(cut, {}, lowercase=True)
    for number in range(200):
        assert ids_of(words, f"odd{number} used") == [[len(f"odd{number}"), 4]]
        assert len(words._younger) + len(words._older) <= 24
    assert sum("used" in call for call in cut.calls) == 1


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
