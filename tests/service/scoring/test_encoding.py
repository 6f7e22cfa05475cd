from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from service.scoring.encoding import PairEncoder, fit_lengths

CLS, SEP = 1, 2
WORDS = ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "b", "red", "shoe", "bag", "[", "]", "SEP"]


def word_tokenizer() -> Tokenizer:
    vocab = {word: index for index, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))  # noqa: S106  # no password
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["[CLS]", "[SEP]"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    return tokenizer


def encoder(max_length_tokens: int = 16) -> PairEncoder:
    return PairEncoder(word_tokenizer(), max_length_tokens)


def test_a_pair_has_the_special_tokens_and_the_segments_of_its_model() -> None:
    (pair,) = encoder().encode("red shoe", ["red bag"])
    assert [WORDS[i] for i in pair.ids] == ["[CLS]", "red", "shoe", "[SEP]", "red", "bag", "[SEP]"]
    assert pair.type_ids.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert not pair.truncated
    assert pair.length_tokens == 7


def test_one_query_with_many_ads_is_the_same_as_many_pairs() -> None:
    ads = ["red bag", "shoe", "a b red shoe bag"]
    together = encoder().encode("red shoe", ads)
    for ad, pair in zip(ads, together, strict=True):
        (alone,) = encoder().encode("red shoe", [ad])
        assert np.array_equal(pair.ids, alone.ids)


def test_special_tokens_spelled_out_in_an_ad_are_plain_text() -> None:
    (pair,) = encoder().encode("red", ["bag [SEP] shoe"])
    assert pair.ids.tolist().count(SEP) == 2
    assert [WORDS[i] for i in pair.ids[3:-1]] == ["bag", "[", "SEP", "]", "shoe"]


def test_a_long_ad_is_cut_from_its_end_and_flagged() -> None:
    (pair,) = encoder(max_length_tokens=9).encode("red shoe", ["a b red shoe bag"])
    assert [WORDS[i] for i in pair.ids[4:-1]] == ["a", "b", "red", "shoe"]
    assert pair.length_tokens == 9
    assert pair.truncated


def test_a_query_that_fills_the_model_leaves_half_of_the_room_to_the_ad() -> None:
    (pair,) = encoder(max_length_tokens=11).encode("red " * 50, ["shoe " * 50])
    assert [WORDS[i] for i in pair.ids[1:5]] == ["red"] * 4
    assert [WORDS[i] for i in pair.ids[6:10]] == ["shoe"] * 4
    assert pair.truncated


@given(st.integers(0, 300), st.integers(0, 300), st.integers(2, 200))
def test_what_is_kept_fits_and_wastes_no_room(n_query: int, n_ad: int, room: int) -> None:
    kept_query, kept_ad = fit_lengths(n_query, n_ad, room)
    assert kept_query <= n_query
    assert kept_ad <= n_ad
    assert kept_query + kept_ad == min(room, n_query + n_ad)


@given(st.integers(1, 300), st.integers(1, 300), st.integers(2, 200))
def test_neither_side_vanishes_and_the_ad_is_cut_first(n_query: int, n_ad: int, room: int) -> None:
    kept_query, kept_ad = fit_lengths(n_query, n_ad, room)
    assert kept_query > 0
    assert kept_ad > 0
    if kept_query < n_query:
        assert kept_ad <= room - room // 2


def test_text_with_no_token_at_all_still_makes_a_pair() -> None:
    (pair,) = encoder().encode("\u200b", [" "])
    assert pair.ids.tolist()[0] == CLS
    assert pair.ids.tolist()[-1] == SEP


def test_a_tokenizer_that_puts_the_ad_before_the_query_is_refused() -> None:
    swapped = word_tokenizer()
    swapped.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $B:1 [SEP]:1 $A [SEP]",
        special_tokens=[("[CLS]", CLS), ("[SEP]", SEP)],
    )
    with pytest.raises(ValueError, match="second text before the first"):
        PairEncoder(swapped, 16)


def test_a_tokenizer_that_makes_nothing_of_plain_letters_is_refused() -> None:
    deaf = Tokenizer(models.WordLevel({"[UNK]": 0, "red": 1}))
    with pytest.raises(ValueError, match="no tokens of plain letters"):
        PairEncoder(deaf, 16)


def test_a_max_length_without_room_for_both_sides_is_refused() -> None:
    with pytest.raises(ValueError, match="no room"):
        encoder(max_length_tokens=4)


def test_a_file_that_is_no_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_text("{}", encoding="utf-8")
    with pytest.raises(ValueError, match=r"tokenizer\.json is not a tokenizer"):
        PairEncoder.from_file(file, 16)


@pytest.mark.parametrize(
    "text",
    [
        "red shoe " * 5000,
        " " * 20_000 + "red " * 300,
        "x" * 30_000,
        "red " + "x" * 9000 + " bag" * 99,
    ],
)
def test_a_text_of_any_length_gives_the_pair_that_all_of_it_would(text: str) -> None:
    whole = word_tokenizer().encode(text, add_special_tokens=False).ids
    [ids] = encoder().tokenize([text])
    kept = encoder().max_length_tokens
    assert ids[:kept].tolist() == whole[:kept]
    assert (len(ids) > kept) == (len(whole) > kept)


def test_special_tokens_that_are_plain_words_are_unknown_in_a_text() -> None:
    vocabulary = {"unk": 0, "sep": 1, "cls": 2, "red": 3, "a": 4, "b": 5}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="unk"))  # noqa: S106  # no password
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(["unk", "sep", "cls"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="cls $A sep", pair="cls $A sep $B sep", special_tokens=[("cls", 2), ("sep", 1)]
    )
    [plain, accented] = PairEncoder(tokenizer, 32).tokenize(["red sep cls red", "red sep cls é"])
    assert plain.tolist() == [3, 0, 0, 3]
    assert accented.tolist() == [3, 0, 0, 0]


def test_dropout_of_training_is_switched_off() -> None:
    merges = [("r", "e"), ("re", "d")]
    pieces = ["r", "e", "d", "re", "red", "a", "b", "c", "s"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, merges, dropout=0.9))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="c $A s", pair="c $A s $B s", special_tokens=[("c", 7), ("s", 8)]
    )
    encoder = PairEncoder(tokenizer, 32)
    assert {tuple(encoder.tokenize(["red"])[0].tolist()) for _ in range(30)} == {(4,)}
