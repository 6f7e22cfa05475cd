"""Finds the batches that will not end: a run that hangs in the runtime, a thread that has died.

Python cannot end a thread. What can be done is to say so, to answer those who wait, and to count
on one worker less until the process is restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic

from service.batching.batch import Batch
from service.batching.generation import E

PATIENCE = 20.0
"""Times its predicted cost that a batch may take. Predictions are good to some ten per cent; a core
that others use as well makes a batch some times slower."""

MOST_A_LOOK_S = 1.0
"""Time between two looks that is held against a batch, at most. Looks are many in a second; where
one was later, the whole process stood still (SIGSTOP, a paused machine), and its batches too."""


def time_limit_s(predicted_s: float, least_s: float) -> float:
    """How long a batch may take before it is given up.

    Args:
        predicted_s: What it was predicted to take.
        least_s: For small ones: a machine can be busy with something else.
    """
    return max(least_s, PATIENCE * predicted_s)


class BatchWatchdog(Generic[E]):
    """Looks at the batches that run; to be called many times a second.

    State: the time that was watched, and its reading when each batch was seen first.
    """

    def __init__(
        self,
        running: Callable[[], Sequence[Batch[E]]],
        give_up: Callable[[Batch[E]], None],
        least_s: float,
    ) -> None:
        """Nothing is watched before the first look.

        Args:
            running: The batches in the workers.
            give_up: Called with each that is overdue, once.
            least_s: As `time_limit_s` has it.
        """
        self._running = running
        self._give_up = give_up
        self._least_s = least_s
        self._watched_s = 0.0
        self._looked_s: float | None = None
        self._seen_s: dict[Batch[E], float] = {}

    def look(self, now_s: float) -> None:
        """Give up what is overdue.

        Args:
            now_s: Monotonic seconds.
        """
        if self._looked_s is not None:
            self._watched_s += min(now_s - self._looked_s, MOST_A_LOOK_S)
        self._looked_s = now_s
        self._seen_s = {
            batch: self._seen_s.get(batch, self._watched_s) for batch in self._running()
        }
        for batch, seen_s in self._seen_s.items():
            limit_s = time_limit_s(batch.predicted_s, self._least_s)
            if self._watched_s - seen_s >= limit_s:
                self._give_up(batch)
