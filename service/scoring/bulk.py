"""Scoring many pairs with no server and no deadline: files, the export, evaluation, self-tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from service.scoring.encoding import EncodedPair

Logits = NDArray[np.float32]

# Where throughput stops growing on one-thread CPU runs; see deploy/benchmarks/README.md.
MICRO_BATCH_PAIRS = 8


class LogitModel(Protocol):
    """Runs one batch; thread-safe."""

    def logits(self, pairs: Sequence[EncodedPair]) -> Logits:
        """(n, k) logits in the order of the pairs."""


def length_batches(pairs: Sequence[EncodedPair]) -> list[list[int]]:
    """Indices of all pairs in micro-batches of neighbours in length, the shortest first."""
    order = sorted(range(len(pairs)), key=lambda index: pairs[index].length_tokens)
    return [
        order[start : start + MICRO_BATCH_PAIRS]
        for start in range(0, len(order), MICRO_BATCH_PAIRS)
    ]


def bulk_logits(
    model: LogitModel,
    pairs: Sequence[EncodedPair],
    *,
    threads: int = 1,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Logits:
    """Logits of any number of pairs, in micro-batches of neighbours in length.

    Args:
        model: Runs a batch.
        pairs: n >= 1 pairs in any order.
        threads: Batches that run at once.
        on_progress: Told how many more pairs are done, after each batch.

    Returns:
        (n, k) float32 in the order of `pairs`.
    """
    batches = length_batches(pairs)

    def run(indices: list[int]) -> Logits:
        return model.logits([pairs[index] for index in indices])

    parts = []
    with ThreadPoolExecutor(threads) as executor:
        for part in executor.map(run, batches):
            parts.append(part)
            on_progress(len(part))
    sorted_logits = np.concatenate(parts)  # (n, k), by length
    logits = np.empty_like(sorted_logits)
    logits[np.concatenate(batches)] = sorted_logits
    return logits
