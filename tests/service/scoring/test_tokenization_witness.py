"""What the service makes of a text, against transformers' own call on the same tokenizer.

transformers is told to take special tokens that are typed into a text for text, as the service
does. The two cut long pairs by different rules, so whole pairs are compared first, and the cut
after that: against transformers where it can cut the ad alone, else against the rule in slow steps.
"""

from __future__ import annotations

import json
import string
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)

from service.scoring.encoding import EncodedPair, PairEncoder
from tests.tiny_models import SPECIAL, WORDS

UNCUT_TOKENS = 1_000_000

AWKWARD = {
    "plain": "cheap red shoe",
    "empty": "",
    "white space": " \t\n \u3000\u00a0 ",
    "capitals and accents": "Café CRÈME İstanbul ŒUVRE straße ǅ",
    "ascii punctuation": f"red{string.punctuation}shoe 'n' a_b c-d {string.punctuation}",
    "punctuation": "50% off!!! $9.99 (new) — “best” … #1 a/b_c~d^e`f|g",
    "chinese, japanese, korean": "跑步鞋 red轻量 ランニングシューズ 신발",
    "rare ideographs": "𠀋𪚥 \uf900",
    "emoji": "🎧 new 🎧🎧",
    "joined emoji": "👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 🇵🇹 1️⃣",
    "combining marks": "re\u0301d I\u0301n\u0308te\u0308r \u0301\u0301\u0301 a" + "\u0300" * 50,
    "composed and decomposed": "é e\u0301 ﬁ ½ ① Å \u212b",
    "ascii control characters": "a\x00b \x01\x02 c\x7fd \x1bred\x08 x\ty\nz",
    "control characters": "c\x85d \x9ered",
    "nul alone": "\x00",
    "format characters": "zero\u200bwidth soft\u00adhyphen \ufeffbom \u2060 \u200e",
    "replacement and private": "\ufffd \ue000 \U000f0000 \uffff",
    "right to left": "أحذية حمراء \u202enwod edispu\u202c נעליים",
    "line separators": "a\u2028b\u2029c\r\nd",
    "special tokens": "red [SEP] shoe [CLS] bag [MASK] [PAD] [UNK]",
    "special tokens, joined": "red[SEP]shoe [SEP][SEP] [sep] [ SEP ] [CLS",
    "special tokens of other families": "red </s> shoe <s> <mask> <pad> <unk></s></s> <mask>bag",
    "only unknown": "☃ ☂ ☄ ♆",
    "a very long word": "t" * 400,
    "a very long word of unknown letters": "☃" * 400,
    "a hundred letters, and one more": "a" * 100 + " " + "b" * 101,
    "ten thousand words": "red shoe cheap bag, " * 2_500,
    "ten thousand different words": " ".join(f"w{number}x" for number in range(10_000)),
}


@dataclass(frozen=True)
class Family:
    """One tokenizer, as the service opens it and as transformers does."""

    theirs: Any
    file: str
    special_ids: frozenset[int]  # but for the unknown token, which a text may well become

    def ours(self, max_length_tokens: int) -> PairEncoder:
        return PairEncoder(Tokenizer.from_str(self.file), max_length_tokens)

    def whole(self, query: str, ad: str) -> tuple[list[int], list[int]]:
        """Token ids and segments by transformers, of all of both texts."""
        # As a list of one: by itself, an ad without text is taken for no ad at all.
        made = self.theirs(
            [query], [ad], split_special_tokens=True, return_token_type_ids=True, verbose=False
        )
        return self.unspelled(made), made["token_type_ids"][0]

    def side(self, text: str) -> list[int]:
        made = self.theirs(
            [text], split_special_tokens=True, add_special_tokens=False, verbose=False
        )
        return self.unspelled(made)

    def unspelled(self, made: Any) -> list[int]:  # noqa: ANN401  # untyped library
        """The ids of the one text or pair; a special one that its author wrote is unknown.

        transformers keeps those that a Unigram vocabulary has as pieces; we may not.
        """
        return [
            self.theirs.unk_token_id if side is not None and number in self.special_ids else number
            for number, side in zip(made["input_ids"][0], made.sequence_ids(0), strict=True)
        ]


def word_piece(folder: Path, *, lowercase: bool) -> Any:  # noqa: ANN401  # untyped library
    from transformers import BertTokenizerFast

    letters = [*string.ascii_letters, *string.digits, *string.punctuation, "鞋", "跑", "e", "é"]
    rest = [f"##{letter}" for letter in [*string.ascii_letters, *string.digits, "\u0301"]]
    pieces = [*SPECIAL, *WORDS, "shoes", "##es", "##x", "cafe", "Café", *letters, *rest]
    file = folder / "vocab.txt"
    file.write_text("\n".join(dict.fromkeys(pieces)) + "\n", encoding="utf-8")
    # transformers' functions are annotated only in part.
    return BertTokenizerFast(str(file), do_lower_case=lowercase)  # type: ignore[no-untyped-call]


def byte_pairs(folder: Path) -> Any:  # noqa: ANN401  # untyped library
    """As RoBERTa's: bytes, merged; two special tokens between the sides, one segment id."""
    from transformers import RobertaTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = ["Ġ r", "Ġr e", "Ġre d", "s h", "sh o", "sho e", "e d", "ð Ł", "Ġ ð"]
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *alphabet]
    pieces += [merge.replace(" ", "") for merge in merges] + ["<mask>"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    (folder / "merges.txt").write_text("\n".join(["#version: 0.2", *merges]), encoding="utf-8")
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    return RobertaTokenizerFast(*files)  # type: ignore[no-untyped-call]  # as above


def unigram(folder: Path) -> Any:  # noqa: ARG001, ANN401  # one shape for all; untyped library
    """As XLM-RoBERTa's: whole text, likeliest cut, an unknown piece for what is left."""
    from transformers import PreTrainedTokenizerFast

    pieces = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    pieces += [(f"▁{word}", -2.0 - 0.01 * rank) for rank, word in enumerate(WORDS)]
    pieces += [(word, -3.0) for word in ("sho", "es", "ed", "鞋")]
    pieces += [(letter, -6.0) for letter in ["▁", *string.ascii_letters, *string.punctuation]]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=3, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens(
        [*(piece for piece, _ in pieces[:4]), AddedToken("<mask>", lstrip=True)]
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # as above
        tokenizer_object=tokenizer,
        bos_token="<s>",  # noqa: S106  # no password
        eos_token="</s>",  # noqa: S106
        pad_token="<pad>",  # noqa: S106
        unk_token="<unk>",  # noqa: S106
        mask_token="<mask>",  # noqa: S106
    )


FAMILIES: dict[str, Callable[[Path], Any]] = {
    "word pieces": lambda folder: word_piece(folder, lowercase=True),
    "word pieces, cased": lambda folder: word_piece(folder, lowercase=False),
    "byte pairs": byte_pairs,
    "unigram": unigram,
}


@cache
def family(name: str) -> Family:
    with TemporaryDirectory() as folder:
        theirs = FAMILIES[name](Path(folder))
        theirs.save_pretrained(folder)
        file = (Path(folder) / "tokenizer.json").read_text(encoding="utf-8")
    special = {*theirs.all_special_ids} - {theirs.unk_token_id}
    return Family(theirs, file, frozenset(special))


@cache
def uncut(name: str) -> PairEncoder:
    return family(name).ours(UNCUT_TOKENS)


def as_lists(pair: EncodedPair) -> tuple[list[int], list[int]]:
    return pair.ids.tolist(), pair.type_ids.tolist()


def cut_one_by_one(query: list[int], ad: list[int], room: int) -> tuple[list[int], list[int]]:
    """The rule in slow steps: the ad's last token, or the query's once the ad has half the room."""
    query, ad = query[:], ad[:]
    while len(query) + len(ad) > room:
        (ad if len(ad) > room - room // 2 else query).pop()
    return query, ad


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("what", AWKWARD)
def test_an_awkward_text_has_the_ids_and_segments_that_transformers_gives_it(
    name: str, what: str
) -> None:
    text, theirs, encoder = AWKWARD[what], family(name), uncut(name)
    for _ in range(2):  # the second time from what was remembered
        pairs = [*encoder.encode("red shoe", [text]), *encoder.encode(text, ["red shoe"])]
        expected = [theirs.whole("red shoe", text), theirs.whole(text, "red shoe")]
        assert [as_lists(pair) for pair in pairs] == expected
        assert not any(pair.truncated for pair in pairs)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("what", AWKWARD)
def test_no_text_becomes_a_token_that_only_the_model_may_write(name: str, what: str) -> None:
    theirs = family(name)
    ids = uncut(name).tokenize([AWKWARD[what]])[0].tolist()
    assert not theirs.special_ids.intersection(ids)
    assert ids == theirs.side(AWKWARD[what])


@pytest.mark.parametrize("name", FAMILIES)
def test_transformers_by_itself_would_let_an_ad_end_its_segment(name: str) -> None:
    theirs = family(name)
    separator = theirs.theirs.sep_token or theirs.theirs.eos_token
    made = theirs.theirs(f"red {separator} shoe", add_special_tokens=False)
    assert theirs.special_ids.intersection(made["input_ids"])


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("max_length_tokens", [9, 16, 64])
@pytest.mark.parametrize("what", AWKWARD)
def test_a_long_ad_is_cut_as_transformers_cuts_the_second_text_only(
    name: str, max_length_tokens: int, what: str
) -> None:
    theirs, text = family(name), AWKWARD[what]
    query = "a"  # less than half of the room
    made = theirs.theirs(
        [query],
        [text],
        split_special_tokens=True,
        truncation="only_second",
        max_length=max_length_tokens,
    )
    [pair] = theirs.ours(max_length_tokens).encode(query, [text])
    assert pair.ids.tolist() == theirs.unspelled(made)
    assert pair.truncated == (len(theirs.whole(query, text)[0]) > max_length_tokens)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("max_length_tokens", [8, 13, 64])
@pytest.mark.parametrize(
    ("query_of", "ad_of"),
    [
        ("ten thousand words", "ten thousand different words"),
        ("ten thousand different words", "plain"),
        ("a very long word", "joined emoji"),
        ("chinese, japanese, korean", "empty"),
    ],
)
def test_a_long_pair_is_the_whole_one_with_tokens_taken_away_by_the_rule(
    name: str, max_length_tokens: int, query_of: str, ad_of: str
) -> None:
    theirs, query, ad = family(name), AWKWARD[query_of], AWKWARD[ad_of]
    n_special = theirs.theirs.num_special_tokens_to_add(pair=True)
    sides = cut_one_by_one(theirs.side(query), theirs.side(ad), max_length_tokens - n_special)
    expected = theirs.theirs.build_inputs_with_special_tokens(*sides)
    if name == "unigram":  # that call puts nothing around a pair there
        expected = [0, *sides[0], 2, 2, *sides[1], 2]
    [pair] = theirs.ours(max_length_tokens).encode(query, [ad])
    assert pair.ids.tolist() == expected


@pytest.mark.parametrize("name", FAMILIES)
def test_half_a_surrogate_pair_has_no_tokens_by_either(name: str) -> None:
    with pytest.raises(TypeError):
        uncut(name).encode("red", ["a\ud800b"])
    with pytest.raises(TypeError):
        family(name).whole("red", "a\ud800b")


ad_like = st.lists(
    st.one_of(
        st.sampled_from([*WORDS, "Shoes", "[SEP]", "[UNK]", "don't", "50%", "x" * 101, "鞋", "é"]),
        st.text(string.printable, max_size=12),
        st.text(max_size=8),
    ),
    max_size=12,
)
ascii_only = st.text(st.characters(max_codepoint=127))
texts = st.one_of(st.text(), ascii_only, ad_like.map(" ".join), ad_like.map("".join))


@pytest.mark.parametrize("name", ["word pieces", "word pieces, cased"])
@given(query=texts, ads=st.lists(texts, min_size=1, max_size=4))
def test_words_that_are_remembered_never_change_what_a_text_becomes(
    name: str, query: str, ads: list[str]
) -> None:
    theirs = family(name)
    expected = [theirs.whole(query, ad) for ad in ads]
    for _ in range(2):
        assert [as_lists(pair) for pair in uncut(name).encode(query, ads)] == expected
