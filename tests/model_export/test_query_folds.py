from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from model_export.query_folds import MIN_TRAINING_PAIRS_PER_CLASS, query_folds


def pairs_of(sizes: list[tuple[int, int]]) -> tuple[list[str], NDArray[np.bool_]]:
    """Queries with so many irrelevant and relevant pairs."""
    queries, relevant = [], []
    for index, (n_others, n_relevant) in enumerate(sizes):
        queries += [f"query {index}"] * (n_others + n_relevant)
        relevant += [False] * n_others + [True] * n_relevant
    return queries, np.array(relevant, dtype=np.bool_)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
def test_a_query_never_stands_in_two_folds_and_every_training_part_has_both_classes(
    sizes: list[tuple[int, int]],
) -> None:
    queries, relevant = pairs_of([*sizes, (1, 1)])
    folds = query_folds(queries, relevant)
    if folds is None:
        return
    n_folds = int(folds.max()) + 1
    assert 2 <= n_folds <= 5
    by_query: dict[str, set[int]] = {}
    for query, fold in zip(queries, folds.tolist(), strict=True):
        by_query.setdefault(query, set()).add(fold)
    assert all(len(found) == 1 for found in by_query.values())
    for fold in range(n_folds):
        for one_class in (relevant, ~relevant):
            assert (one_class & (folds != fold)).sum() >= MIN_TRAINING_PAIRS_PER_CLASS
        assert (folds == fold).any()


def test_many_small_queries_make_five_folds_with_equal_parts_of_both_classes() -> None:
    queries, relevant = pairs_of([(3, 1)] * 50)
    folds = query_folds(queries, relevant)
    assert folds is not None
    assert [int((folds == fold).sum()) for fold in range(5)] == [40] * 5
    assert [int(relevant[folds == fold].sum()) for fold in range(5)] == [10] * 5


def test_queries_of_one_class_each_are_mixed_in_every_fold() -> None:
    queries, relevant = pairs_of([(4, 0)] * 10 + [(0, 4)] * 10)
    folds = query_folds(queries, relevant)
    assert folds is not None
    assert [float(relevant[folds == fold].mean()) for fold in range(5)] == [0.5] * 5


def test_the_order_of_the_file_decides_nothing() -> None:
    queries, relevant = pairs_of([(2, 1), (1, 1), (1, 2)] * 12)
    shuffled = np.random.default_rng(1).permutation(len(queries))
    folds = query_folds(queries, relevant)
    again = query_folds([queries[i] for i in shuffled], relevant[shuffled])
    assert folds is not None
    assert again is not None
    assert again.tolist() == folds[shuffled].tolist()


def test_fewer_folds_are_made_where_five_would_starve_one() -> None:
    # Each of the two relevant queries has six: with both in one training part or one is the same.
    queries, relevant = pairs_of([(10, 0)] * 4 + [(0, 6)] * 2)
    folds = query_folds(queries, relevant)
    assert folds is not None
    for fold in range(int(folds.max()) + 1):
        assert relevant[folds != fold].sum() >= MIN_TRAINING_PAIRS_PER_CLASS


@pytest.mark.parametrize("sizes", [[(20, 20)], [(20, 0), (0, 20)], [(3, 3), (3, 3)]])
def test_no_folds_are_made_where_a_training_part_could_not_have_both_classes(
    sizes: list[tuple[int, int]],
) -> None:
    assert query_folds(*pairs_of(sizes)) is None
