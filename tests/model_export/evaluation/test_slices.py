from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.evaluation.slices import PairLengths, is_small, slices_of


def lengths(ads: list[int], truncated: list[bool] | None = None) -> PairLengths:
    return PairLengths(
        query_tokens=np.ones(len(ads), dtype=np.int64),
        ad_tokens=np.array(ads, dtype=np.int64),
        truncated=np.array(truncated or [False] * len(ads)),
    )


@given(st.lists(st.integers(0, 12), min_size=1, max_size=40))
def test_the_slices_of_a_group_share_out_the_pairs(ads: list[int]) -> None:
    made = slices_of(["a"] * len(ads), lengths(ads, [length > 6 for length in ads]))
    for group in ("query length", "ad length", "truncation", "source"):
        inside = np.sum([part.chosen for part in made if part.group == group], axis=0)
        assert inside.tolist() == [1] * len(ads)


def test_edges_are_the_quartiles_and_are_told() -> None:
    made = slices_of(["a"] * 8, lengths([1, 2, 3, 4, 5, 6, 7, 9]))
    named = [(part.name, int(part.chosen.sum())) for part in made if part.group == "ad length"]
    assert named == [("1-3 tokens", 3), ("4-5 tokens", 2), ("6-7 tokens", 2), ("8-9 tokens", 1)]


def test_equal_lengths_are_never_told_apart() -> None:
    made = slices_of(["a"] * 6, lengths([5] * 6))
    assert [part.name for part in made if part.group == "ad length"] == ["5 tokens"]


def test_without_a_tokenizer_only_the_sources_are_left() -> None:
    made = slices_of(["b", "a", "b"], None)
    assert [(part.name, part.chosen.tolist()) for part in made] == [
        ("b", [True, False, True]),
        ("a", [False, True, False]),
    ]


@pytest.mark.parametrize(
    ("n_relevant", "n_others", "small"),
    [(50, 50, False), (50, 49, True), (19, 500, True), (500, 19, True), (20, 80, False)],
)
def test_few_pairs_or_few_of_one_class_make_a_small_slice(
    n_relevant: int, n_others: int, small: bool
) -> None:
    assert is_small(n_relevant, n_others) is small
