from __future__ import annotations

import numpy as np
import pytest

from model_export.distillation.pair_sampling import Variation, sample_pairs, vary_pairs
from model_export.distillation.rewording import Rewording
from model_export.evaluation.baselines import words

pytest.importorskip("bm25s")

QUERIES = ["red shoe", "blue lamp"]
ADS = [f"{color} {noun} {n}" for n in range(20) for color in ("red", "blue", "green")
       for noun in ("shoe", "lamp", "chair")]  # fmt: skip


def sample(n_pairs: int = 100, seed: int = 0, share: float = 0.0) -> list[tuple[str, str]]:
    return sample_pairs(
        QUERIES, [ADS], n_pairs, pairs_per_query=10, pseudo_query_share=share, seed=seed
    )


def test_as_many_different_pairs_as_asked_for_of_known_queries_and_ads() -> None:
    pairs = sample(40)
    assert len(set(pairs)) == len(pairs) == 40
    assert {query for query, _ in pairs} == set(QUERIES)
    assert {ad for _, ad in pairs} <= set(ADS)


def test_four_in_ten_are_hits_four_near_misses_and_two_strangers() -> None:
    pairs = sample(40)
    shared = [len(set(words(query)) & set(words(ad))) for query, ad in pairs]
    # Twenty ads have both words of a query, so its ten best all do; eighty have one or both.
    assert shared.count(0) == 8
    hits = shared.count(2)
    assert 16 <= hits < 32, "the ten best, and a few among the others that share a word"
    assert shared.count(1) > 0


def test_the_seed_decides() -> None:
    assert sample() == sample()
    assert sample() != sample(seed=1)


def test_pseudo_queries_are_words_of_ads_and_have_their_part_of_the_pairs() -> None:
    pairs = sample(80, share=0.5)
    pseudo = [query for query, _ in pairs if query not in QUERIES]
    assert 10 <= len(pseudo) <= 40
    assert all(any(query in ad for ad in ADS) for query in pseudo)


def test_few_ads_give_fewer_pairs() -> None:
    pairs = sample_pairs(
        ["red"], [["red shoe", "lamp"]], 50, pairs_per_query=10, pseudo_query_share=0, seed=0
    )
    assert sorted(pairs) == [("red", "lamp"), ("red", "red shoe")]


def variation_of(reworded_share: float, cut_share: float) -> Variation:
    tokens = {word: number for number, word in enumerate(("red", "blue", "green", "shoe", "lamp"))}
    return Variation(Rewording(tokens, np.eye(5, dtype=np.float32)), reworded_share, cut_share)


def varied(reworded_share: float, cut_share: float) -> list[tuple[str, str]]:
    variation = variation_of(reworded_share, cut_share)
    long = [f"{ad} with a box" for ad in ADS]
    return sample_pairs(
        QUERIES, [long], 300, pairs_per_query=10, pseudo_query_share=0.0, seed=0,
        variation=variation,
    )  # fmt: skip


def test_few_queries_become_more_by_other_words() -> None:
    queries = {query for query, _ in varied(0.5, 0.0)}
    assert set(QUERIES) < queries
    assert len(queries) > 10
    assert {query for query, _ in varied(0.0, 0.0)} == set(QUERIES)


def test_a_share_of_the_ads_ends_early_but_not_before_three_words() -> None:
    lengths = [len(ad.split()) for _, ad in varied(0.0, 0.5)]
    assert 0.3 < np.mean([length < 6 for length in lengths]) < 0.7
    assert min(lengths) == 3


def test_each_file_gives_as_many_pseudo_queries() -> None:
    files = [["alpha"], [f"beta{n}" for n in range(50)]]
    pairs = sample_pairs([], files, 200, pairs_per_query=10, pseudo_query_share=1.0, seed=0)
    queries = {query for query, _ in pairs}
    assert "alpha" in queries, "in spite of fifty ads against it"
    assert len(queries) <= 11


def test_a_given_pair_stays_together_when_it_is_varied() -> None:
    pairs = [("red thing", "red shoe of one"), ("blue thing", "blue lamp of two")]
    made = vary_pairs(pairs, 400, variation_of(0.0, 0.0), seed=0)
    assert len(set(made)) == len(made) > 10
    for query, ad in made:
        assert query.split()[1:] == ["thing"]
        assert ad.split()[2] == "of"
        number = ad.split()[3]
        original = pairs[number == "two"]
        assert query == original[0] or query.split()[0] != original[0].split()[0]
    assert {ad.split()[3] for _, ad in made} == {"one", "two"}
    assert set(pairs) <= set(made), "a fourth is left as it was"


def test_a_query_with_many_pairs_is_varied_as_often_as_one_with_few() -> None:
    many = [("often", f"red shoe {n}") for n in range(500)]
    made = vary_pairs([*many, ("seldom", "blue lamp")], 200, variation_of(0.0, 0.0), seed=0)
    seldom = {ad for query, ad in made if query == "seldom"}
    assert len(seldom) > 5, "though it is one pair of 501"
