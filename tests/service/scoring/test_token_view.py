from __future__ import annotations

import pytest
from tokenizers import normalizers

from service.pair_seen import PairSeen, Side
from service.scoring.encoding import PairEncoder
from service.scoring.token_view import see_pair
from tests.service.scoring.test_encoding import word_tokenizer
from tests.service.scoring.test_tokenization_witness import AWKWARD, FAMILIES, family

SHORT = {what: text for what, text in AWKWARD.items() if len(text) <= 8_000}


def seen(query: str, ad: str, max_length_tokens: int = 16) -> PairSeen:
    return see_pair(PairEncoder(word_tokenizer(), max_length_tokens), query, ad)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("max_length_tokens", [16, 5_000])
def test_the_tokens_are_those_that_the_encoder_feeds(name: str, max_length_tokens: int) -> None:
    encoder = family(name).ours(max_length_tokens)
    for text in SHORT.values():
        for query, ad in ((text, "red bag"), ("red bag", text), (text, text)):
            [pair] = encoder.encode(query, [ad])
            tokens = see_pair(encoder, query, ad).tokens
            assert [token.id for token in tokens] == pair.ids.tolist()
            assert [token.segment for token in tokens] == pair.type_ids.tolist()


@pytest.mark.parametrize("name", FAMILIES)
def test_words_are_parts_of_their_text_in_order_and_none_overlaps(name: str) -> None:
    encoder = family(name).ours(5_000)
    for text in SHORT.values():
        side = see_pair(encoder, "red bag", text).ad
        at = 0
        for word in side.words:
            assert at <= word.start < word.end <= len(text)
            assert word.text == text[word.start : word.end]
            assert not word.text[0].isspace()
            assert not word.text[-1].isspace()
            at = word.end


@pytest.mark.parametrize("name", FAMILIES)
def test_words_of_a_plain_text_are_what_stands_between_its_spaces(name: str) -> None:
    side = see_pair(family(name).ours(64), "red bag", "cheap red  shoe ").ad
    assert [word.text for word in side.words] == ["cheap", "red", "shoe"]


def test_a_token_tells_its_side_its_segment_and_its_place() -> None:
    tokens = seen("red shoe", "a  bag").tokens
    assert [
        (token.text, token.side, token.segment, token.start, token.end) for token in tokens
    ] == [
        ("[CLS]", Side.SPECIAL, 0, None, None),
        ("red", Side.QUERY, 0, 0, 3),
        ("shoe", Side.QUERY, 0, 4, 8),
        ("[SEP]", Side.SPECIAL, 0, None, None),
        ("a", Side.AD, 1, 0, 1),
        ("bag", Side.AD, 1, 3, 6),
        ("[SEP]", Side.SPECIAL, 1, None, None),
    ]


def test_a_model_that_is_fed_no_segments_has_none() -> None:
    encoder = PairEncoder(word_tokenizer(), 16)
    tokens = see_pair(encoder, "red", "bag", fed_segments=False).tokens
    assert {token.segment for token in tokens} == {None}


def test_what_does_not_fit_is_told_and_its_words_are_left_out() -> None:
    pair = seen("red shoe", "a b red shoe bag", max_length_tokens=9)
    assert [word.text for word in pair.ad.words] == ["a", "b", "red", "shoe"]
    assert pair.ad.cut_text == " bag"
    assert pair.query.cut_text == ""


def test_both_sides_can_be_cut() -> None:
    pair = seen("red " * 50, "shoe " * 50, max_length_tokens=11)
    assert pair.query.cut_text == (" red" * 46) + " "
    assert pair.ad.cut_text == (" shoe" * 46) + " "


def test_a_text_of_no_tokens_is_not_cut() -> None:
    pair = seen("red", " \t ")
    assert (pair.ad.words, pair.ad.cut_text) == ((), "")


def test_a_word_is_whole_where_some_of_its_tokens_are_cut() -> None:
    encoder = family("word pieces").ours(8)
    side = see_pair(encoder, "red", "red shoe xyz").ad
    assert side.words[-1].text == "xyz"
    assert "xyz".endswith(side.cut_text)
    assert 0 < len(side.cut_text) < 3


def test_one_character_that_becomes_several_words_is_one() -> None:
    tokenizer = word_tokenizer()
    tokenizer.normalizer = normalizers.NFKC()  # "㈱" becomes "(株)"
    side = see_pair(PairEncoder(tokenizer, 16), "red", "red ㈱ bag").ad
    assert [word.text for word in side.words] == ["red", "㈱", "bag"]
