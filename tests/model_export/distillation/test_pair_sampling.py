from __future__ import annotations

import pytest

from model_export.distillation.pair_sampling import sample_pairs
from model_export.evaluation.baselines import words

pytest.importorskip("bm25s")

QUERIES = ["red shoe", "blue lamp"]
ADS = [f"{color} {noun} {n}" for n in range(20) for color in ("red", "blue", "green")
       for noun in ("shoe", "lamp", "chair")]  # fmt: skip


def sample(n_pairs: int = 100, seed: int = 0, share: float = 0.0) -> list[tuple[str, str]]:
    return sample_pairs(
        QUERIES, ADS, n_pairs, pairs_per_query=10, pseudo_query_share=share, seed=seed
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
        ["red"], ["red shoe", "lamp"], 50, pairs_per_query=10, pseudo_query_share=0, seed=0
    )
    assert sorted(pairs) == [("red", "lamp"), ("red", "red shoe")]
