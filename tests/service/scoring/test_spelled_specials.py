from __future__ import annotations

import numpy as np
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers

from service.scoring.spelled_specials import SpelledSpecials

PIECES = [("<s>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁red", -1.0), ("▁", -2.0), ("shoe", -1.0)]
LETTERS = [(letter, -9.0) for letter in "</s>"]  # with these, nothing is unknown here


def unigram(unk_id: int | None) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram(PIECES + LETTERS, unk_id=unk_id))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([AddedToken(text, special=True) for text in ("<s>", "</s>")])
    tokenizer.encode_special_tokens = True
    return tokenizer


def cut(tokenizer: Tokenizer, text: str) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    return np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.int32)


def test_a_special_token_that_a_text_spells_is_unknown() -> None:
    tokenizer = unigram(unk_id=2)
    ids = cut(tokenizer, "red </s> shoe")
    assert 1 in ids
    kept = SpelledSpecials(tokenizer).without(ids)
    assert kept.tolist() == [2 if number == 1 else number for number in ids]


def test_what_stands_around_it_does_not_help_it() -> None:
    tokenizer = Tokenizer(models.Unigram([*PIECES, ("▁</", 0.0), ("s>", 0.0), ("▁x", -1.0)], 2))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens([AddedToken("</s>", special=True)])
    tokenizer.encode_special_tokens = True
    assert 1 not in cut(tokenizer, "</s>"), "alone it is cut in two"
    ids = cut(tokenizer, "x</s>")
    assert 1 in ids
    assert 1 not in SpelledSpecials(tokenizer).without(ids)


def test_it_is_left_out_where_nothing_is_unknown() -> None:
    tokenizer = unigram(unk_id=None)
    ids = cut(tokenizer, "</s>")
    assert ids.tolist() == [4, 1]
    assert SpelledSpecials(tokenizer).without(ids).tolist() == [4]


def test_a_tokenizer_that_reads_them_as_text_keeps_all_its_tokens() -> None:
    vocabulary = {"[UNK]": 0, "[SEP]": 1, "red": 2}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))  # noqa: S106  # no password
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens([AddedToken(t, special=True) for t in ("[UNK]", "[SEP]")])
    tokenizer.encode_special_tokens = True
    ids = cut(tokenizer, "red [SEP] [UNK] ☃")
    assert SpelledSpecials(tokenizer).without(ids) is ids
