from __future__ import annotations

import pytest

from model_export.distillation.pair_sampling import IN_QUERY_RANKS
from model_export.finetuning.hard_negatives import mine_hard_negatives
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from service.domain import Ad
from service.scoring.ad_template import AdTemplate

pytest.importorskip("bm25s")

LAMPS = [Ad(str(n), text=f"lamp {'shade ' * n}model{n}") for n in range(20)]
PAIRS = [
    LabelledPair("lamp", LAMPS[0], 1.0, Grade(3, 3)),
    *(LabelledPair("sofa", ad, 0.0, Grade(1, 3)) for ad in LAMPS[1:]),
    LabelledPair("sofa", Ad("99", text="a sofa"), 1.0, Grade(2, 3)),
]


def test_they_share_a_word_with_the_query_are_not_its_best_and_nobody_judged_them() -> None:
    mined = mine_hard_negatives(PAIRS, 5, (), AdTemplate())
    assert [pair.query for pair in mined] == ["lamp"] * 5, "all lamps were judged for the sofa"
    texts = [pair.ad.text for pair in mined]
    ranked = [ad.text for ad in LAMPS]  # BM25 likes short texts
    assert texts == ranked[IN_QUERY_RANKS : IN_QUERY_RANKS + 5]
    assert all(pair.label == 0 and pair.grade == Grade(0, 3) for pair in mined)


def test_queries_that_are_held_out_get_none() -> None:
    assert mine_hard_negatives(PAIRS, 5, {"lamp"}, AdTemplate()) == []
    assert mine_hard_negatives(PAIRS, 5, {" Lamp"}, AdTemplate()) == []


def test_pairs_without_grades_get_negatives_without() -> None:
    bare = [LabelledPair(pair.query, pair.ad, pair.label) for pair in PAIRS]
    assert {pair.grade for pair in mine_hard_negatives(bare, 2, (), AdTemplate())} == {None}


def test_what_was_judged_for_a_query_is_no_negative_of_it_in_another_spelling() -> None:
    spelt = [*PAIRS, *(LabelledPair(" LAMP", ad, 1.0, Grade(3, 3)) for ad in LAMPS[1:])]
    assert mine_hard_negatives(spelt, 5, (), AdTemplate()) == []
    once = [*PAIRS, LabelledPair("Lamp", LAMPS[1], 1.0, Grade(3, 3))]
    mined = mine_hard_negatives(once, 2, (), AdTemplate())
    assert [pair.query for pair in mined] == ["lamp"] * 2, "mined once"
