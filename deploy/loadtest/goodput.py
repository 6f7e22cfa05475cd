"""Totals of what became of all pairs of a run, over all users and all worker processes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import get_args

from deploy.loadtest.answer_verdict import PairFate


class GoodputTotals:
    """Counts pairs by fate."""

    def __init__(self) -> None:
        self._pairs: Counter[str] = Counter()

    def add(self, pairs: Mapping[PairFate, int]) -> None:
        """Count the pairs of one answer."""
        for fate, n_pairs in pairs.items():
            self._pairs[fate] += n_pairs

    def take(self) -> dict[str, int]:
        """Everything counted since the last call: what a worker process reports to its master."""
        taken, self._pairs = dict(self._pairs), Counter()
        return taken

    def merge(self, reported: Mapping[str, int]) -> None:
        """Count what a worker process reported."""
        self._pairs.update(reported)

    def reset(self) -> None:
        """Forget everything: a new run starts."""
        self._pairs.clear()

    def is_sound(self) -> bool:
        """Whether something was asked, and no pair met a fault. Overload is none."""
        return self._pairs.total() > 0 and not self._pairs["failed"]

    def summary(self, duration_s: float) -> str:
        """A few lines for people.

        Args:
            duration_s: Length of the run; 0 leaves out the rate.
        """
        total = self._pairs.total()
        shares = ", ".join(
            f"{fate} {self._pairs[fate]} ({self._pairs[fate] / total if total else 0:.2%})"
            for fate in get_args(PairFate)
        )
        rate = f", {self._pairs['good'] / duration_s:.0f} good pairs/s" if duration_s else ""
        return f"goodput: {total} pairs asked for{rate}\n         {shares}"
