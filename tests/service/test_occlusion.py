from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.domain import Ad, AdScore, PairStatus, Priority
from service.occlusion import MAX_WORDS_PER_SIDE, Occlusion, occlude, without
from service.pair_seen import PairSeen, SideSeen, Word

# As BERT's pre-tokenizer cuts: runs of letters and digits, and every other sign by itself.
WORD = re.compile(r"[a-z0-9]+|[^a-z0-9\s]")
TEXTS = st.text(alphabet="ab1-,. \t\n", max_size=40)


def words(text: str) -> tuple[Word, ...]:
    return tuple(Word(found.group(), *found.span()) for found in WORD.finditer(text))


def seen(query: str, ad: str) -> PairSeen:
    sides = [SideSeen(text, words(text), len(text)) for text in (query, ad)]
    return PairSeen((), *sides)


def scored(*scores: float | None) -> list[AdScore]:
    ended = {True: PairStatus.DEADLINE, False: PairStatus.OK}
    return [AdScore("a", score, ended[score is None], truncated=False) for score in scores]


@given(TEXTS, st.data())
def test_a_text_less_a_word_has_all_other_words_in_order(text: str, data: st.DataObject) -> None:
    cut = words(text)
    number = data.draw(st.integers(0, len(cut) - 1)) if cut else None
    if number is None:
        return
    left = [word.text for word in words(without(text, cut[number]))]
    assert left == [word.text for word in cut[:number] + cut[number + 1 :]]


@given(st.text(max_size=30), st.data())
def test_nothing_else_but_white_space_changes(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    left = without(text, Word(text[start:end], start, end))
    assert "".join(left.split()) == "".join((text[:start] + text[end:]).split())


@pytest.mark.parametrize(
    ("text", "word", "left"),
    [
        ("red shoe bag", "shoe", "red bag"),
        ("red shoe bag", "red", "shoe bag"),
        ("red shoe bag", "bag", "red shoe"),
        ("red", "red", ""),
        ("nike's", "'", "nike s"),
        ("shoes, red", ",", "shoes red"),
        ("(red)", "red", "( )"),
    ],
)
def test_no_space_is_left_over_and_no_two_words_grow_together(
    text: str, word: str, left: str
) -> None:
    start = text.index(word)
    assert without(text, Word(word, start, start + len(word))) == left


def test_the_pair_itself_comes_first_then_each_word_of_the_ad_then_of_the_query() -> None:
    ad = Ad("A", title="red", description="bag")
    query = occlude(seen("buy bag", "red bag"), 512).score_query(ad, "r", 0.5)
    assert query.ads == (ad, Ad("A", text="bag"), Ad("A", text="red"), ad, ad)
    assert query.queries == ("buy bag", "buy bag", "buy bag", "bag", "buy")
    assert (query.query, query.request_id, query.timeout_s) == ("buy bag", "r", 0.5)


def test_it_is_bulk_work_and_made_up() -> None:
    query = occlude(seen("a", "b"), 512).score_query(Ad("A", text="b"), "r", 0.5)
    assert query.priority is Priority.BATCH
    assert query.probe


@given(st.integers(1, 300), st.integers(0, 90), st.integers(0, 90))
def test_no_more_pairs_than_one_request_may_have_and_words_than_are_told(
    max_pairs: int, n_query: int, n_ad: int
) -> None:
    occlusion = occlude(seen("a " * n_query, "b " * n_ad), max_pairs)
    query = occlusion.score_query(Ad("A", text="b " * n_ad), "r", 1)
    assert len(query.ads) == len(query.queries) <= max_pairs
    assert occlusion.n_query_words <= min(n_query, MAX_WORDS_PER_SIDE)
    assert occlusion.n_ad_words <= min(n_ad, MAX_WORDS_PER_SIDE)
    if max_pairs > 2 * MAX_WORDS_PER_SIDE:
        assert occlusion.n_ad_words == min(n_ad, MAX_WORDS_PER_SIDE)


def test_a_word_has_the_drop_of_the_pair_without_it() -> None:
    occlusion = Occlusion(seen("buy bag", "red bag"), 2, 2)
    scores = scored(0.75, 0.5, 0.875, 0.75, 0.25)
    of_query, of_ad = occlusion.effects(scores, np.array([2.0, 1.0, 3.0, 2.0, -1.0]))
    assert [(effect.word.text, effect.score_drop, effect.logit_drop) for effect in of_ad] == [
        ("red", 0.25, 1.0),
        ("bag", -0.125, -1.0),
    ]
    assert [(effect.word.text, effect.score_drop, effect.logit_drop) for effect in of_query] == [
        ("buy", 0.0, 0.0),
        ("bag", 0.5, 3.0),
    ]


def test_words_past_the_limit_and_past_the_deadline_have_no_numbers() -> None:
    occlusion = Occlusion(seen("buy", "red bag new"), 1, 2)
    of_query, of_ad = occlusion.effects(scored(0.5, 0.25, None, 0.5), np.array([0, -1.0, 9, 0]))
    assert [(effect.status, effect.score_drop, effect.logit_drop) for effect in of_ad] == [
        (PairStatus.OK, 0.25, 1.0),
        (PairStatus.DEADLINE, None, None),
        (None, None, None),
    ]
    assert [effect.score_drop for effect in of_query] == [0.0]
