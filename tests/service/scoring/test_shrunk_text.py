from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.scoring.encoding import PairEncoder, TextIds
from service.scoring.shrunk_text import PIECE_CHARS, ShrunkText
from tests.service.scoring.test_word_pieces import a_tokenizer

LONGEST = 100
shrunk = ShrunkText(LONGEST)

odd_text = st.lists(
    st.one_of(
        st.sampled_from(
            ["running", "Shoes", "-", " ", "\t", "\u3000", "\x1c", "$10!", "\u00e9", "\u0301"]
        ),
        st.integers(90, 110).map(lambda n: "x" * n),
        st.integers(90, 300).map(lambda n: " " * n),
        st.text(max_size=5),
    ),
    max_size=30,
).map("".join)


@given(text=odd_text, lowercase=st.booleans())
def test_a_shrunk_text_has_the_same_tokens(text: str, lowercase: bool) -> None:
    tokenizer = a_tokenizer(lowercase=lowercase)
    whole, less = (
        tokenizer.encode(one, add_special_tokens=False).ids for one in (text, shrunk(text, 10**6))
    )
    assert less == whole


@pytest.mark.parametrize("text", ["x" * 900_000, " " * 900_000, ("y" * 5000 + " ") * 180])
def test_what_has_no_tokens_of_its_own_is_left_out(text: str) -> None:
    assert len(shrunk(text, 10**6)) < 20_000


def test_it_ends_once_there_is_enough() -> None:
    text = "red shoe " * 100_000
    less = shrunk(text, 1000)
    assert 1000 <= len(less) <= PIECE_CHARS
    assert text.startswith(less)


@pytest.mark.parametrize("cut_at", [PIECE_CHARS - 1, PIECE_CHARS, PIECE_CHARS + 1])
@pytest.mark.parametrize("between", ["", " ", "  ", "-"])
def test_words_that_lie_over_two_pieces_stay_what_they_are(cut_at: int, between: str) -> None:
    text = "a " * ((cut_at - 10) // 2) + "b" * 10 + between + "b" * 10 + " running"
    ids = [
        a_tokenizer().encode(one, add_special_tokens=False).ids
        for one in (text, shrunk(text, 10**6))
    ]
    assert ids[0] == ids[1]


@pytest.mark.parametrize(
    "text",
    [
        "x" * 900_000,
        " " * 400_000 + "running shoes " * 400,
        "shoe " + "x" * 300_000 + " running" * 200,
        ("x" * 101 + " ") * 5000,
        ("x" * 101 + " ") * 100 + "running",
        "\n\t" * 50_000 + "shoe",
    ],
    ids=["one word", "a gap", "between", "words too long", "few of them", "lines"],
)
def test_a_text_of_any_length_gives_the_tokens_that_all_of_it_would(text: str) -> None:
    encoder = PairEncoder(a_tokenizer(), 64)
    whole = a_tokenizer().encode(text, add_special_tokens=False).ids
    [ids] = encoder.tokenize([text])
    assert ids[:64].tolist() == whole[:64]
    assert (len(ids) > 64) == (len(whole) > 64)


def test_however_long_a_text_is_its_tokenizer_gets_little_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_chars: list[int] = []
    cut = PairEncoder._cut

    def watched(encoder: PairEncoder, texts: list[str]) -> list[TextIds]:
        given_chars.extend(map(len, texts))
        return cut(encoder, texts)

    monkeypatch.setattr(PairEncoder, "_cut", watched)
    marks = "a" + "\u0301" * 900_000  # no tokens, and nothing that is left out
    PairEncoder(a_tokenizer(), 64).tokenize(["x" * 900_000, marks])
    assert len(given_chars) == 4
    assert max(given_chars) < 20_000
