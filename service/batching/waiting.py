"""What waits, as columns: the planner and the admission look at all pairs at once, in C.

Thousands of pairs can wait while a batch is chosen every few milliseconds, on the same cores that
compute them; a loop over Python objects would cost as much as a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.intp]

FIRST_CAPACITY = 64


class WaitingPairs(NamedTuple):
    """n waiting pairs; row i of every column is the same pair. Not to be modified.

    Attributes:
        length_tokens: (n,) tokens before padding.
        priority: (n,) scheduling class; the smaller number first.
        turn: (n,) virtual time at which the pair's turn comes; fair between requests.
        latest_start_s: (n,) instant by which the rest of its request has to start.
        deadline_s: (n,) instant after which a score is of no use.
    """

    length_tokens: Floats
    priority: Floats
    turn: Floats
    latest_start_s: Floats
    deadline_s: Floats

    def rows(self, rows: Rows) -> WaitingPairs:
        """Some of the pairs."""
        return WaitingPairs(*(column[rows] for column in self))


def joined(parts: Sequence[WaitingPairs]) -> WaitingPairs:
    """The pairs of several tables, one after the other; at least one table."""
    return WaitingPairs(*map(np.concatenate, zip(*parts, strict=True)))


class PairTable:
    """A growing (5, n) table without holes: a row that leaves is filled with the last one."""

    def __init__(self) -> None:
        self._table = np.empty((5, FIRST_CAPACITY))
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def columns(self) -> WaitingPairs:
        """The pairs as they stand; a view that the next change makes invalid."""
        return WaitingPairs(*self._table[:, : self._n])

    def append(self, pairs: WaitingPairs) -> None:
        """Add pairs behind the last row."""
        end = self._n + len(pairs.length_tokens)
        if end > self._table.shape[1]:
            grown = np.empty((5, 2 * end))
            grown[:, : self._n] = self._table[:, : self._n]
            self._table = grown
        self._table[:, self._n : end] = pairs
        self._n = end

    def change(
        self, row: int, *, priority: float, turn: float, latest_start_s: float, deadline_s: float
    ) -> None:
        """Give a waiting pair another urgency."""
        self._table[1:, row] = (priority, turn, latest_start_s, deadline_s)

    def remove(self, row: int) -> int:
        """Take a row out.

        Returns:
            The row that has moved into its place; `row` itself where it was the last.
        """
        self._n -= 1
        if row != self._n:
            self._table[:, row] = self._table[:, self._n]
            return self._n
        return row
