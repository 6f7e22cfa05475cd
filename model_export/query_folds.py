"""Which pairs are held out together, so that figures speak of queries that were never seen."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MAX_FOLDS = 5
MIN_TRAINING_PAIRS_PER_CLASS = 5
"""A map fitted on fewer of a class says nothing about the one fitted on all pairs."""


def query_folds(
    queries: Sequence[str],
    relevant: NDArray[np.bool_],
    max_folds: int = MAX_FOLDS,
    deal: int = 0,
) -> NDArray[np.int64] | None:
    """The fold of each pair; all pairs of a query are in one.

    As many folds as can be, and each with its part of both classes as nearly as the queries
    allow: queries are dealt out large ones first, each to the fold that it unbalances least. Those
    of about a size (within a factor of two) come in the order of their hashes, so neither chance
    nor the order of the file decides.

    Args:
        queries: (n,) query of each pair.
        relevant: (n,) whether it is relevant.
        max_folds: Fewer are made where a training part would lack one of the classes.
        deal: Goes into the hashes: another number, other folds.

    Returns:
        (n,) numbers from 0 on; None where not even two folds are possible, a single query say.
    """
    names, query_of_pair = np.unique(np.asarray(queries), return_inverse=True)
    sizes = np.zeros((len(names), 2))  # pairs of each query: irrelevant, relevant
    np.add.at(sizes, (query_of_pair, relevant.astype(np.int64)), 1)
    salt = str(deal) if deal else ""
    order = sorted(
        range(len(names)),
        key=lambda i: (-int(sizes[i].sum()).bit_length(), _digest(salt + str(names[i]))),
    )
    for n_folds in range(min(max_folds, len(names)), 1, -1):
        fold_of_query, counts = _deal(sizes, order, n_folds)
        if (sizes.sum(axis=0) - counts >= MIN_TRAINING_PAIRS_PER_CLASS).all():
            return fold_of_query[query_of_pair]
    return None


def _deal(
    sizes: NDArray[np.float64], order: Sequence[int], n_folds: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The fold of each query, and the pairs of each class in each fold."""
    fold_of_query = np.zeros(len(sizes), dtype=np.int64)
    counts = np.zeros((n_folds, 2))
    totals = np.maximum(sizes.sum(axis=0), 1)
    for query in order:
        added = sizes[query]
        # By how much each fold would raise the sum of squared shares of the classes.
        unbalance = (added * (2 * counts + added) / totals**2).sum(axis=1)
        fold = int(np.argmin(unbalance))
        fold_of_query[query] = fold
        counts[fold] += added
    return fold_of_query, counts


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
