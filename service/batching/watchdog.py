"""Finds the batches that will not end: a run that hangs in the runtime, a thread that has died.

Python cannot end a thread. What can be done is to say so, to answer those who wait, and to count
on one worker less until the process is restarted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

from service.batching.batch import Batch
from service.batching.generation import E

PATIENCE = 20.0
"""Times its predicted cost that a batch may take. Predictions are good to some ten per cent; memory
and caches that others use as well make a batch some times slower."""

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


@dataclass(frozen=True, slots=True)
class ThreadUse:
    """What a thread does with the machine.

    Attributes:
        wants_core: It runs, or would if a core were free; not one that waits for anything else.
        core_s: Seconds that it has had of a core since it began.
    """

    wants_core: bool
    core_s: float


@dataclass(slots=True)
class _Watched:
    """What is held against a batch, in seconds, and its thread's use of a core at the last look."""

    held_s: float = 0.0
    core_s: float | None = None

    def add(self, passed_s: float, use: ThreadUse | None) -> None:
        """Time has passed.

        Of a thread that waits for a core only what it got counts: others take the machine from it,
        and a new process would have no more of it.
        """
        if use is not None and use.wants_core and self.core_s is not None:
            passed_s = min(passed_s, use.core_s - self.core_s)
        self.core_s = use.core_s if use is not None else None
        self.held_s += passed_s


class BatchWatchdog(Generic[E]):
    """Looks at the batches that run; to be called many times a second.

    State: when it looked last, and what it holds against each batch.
    """

    def __init__(
        self,
        running: Callable[[], Sequence[Batch[E]]],
        give_up: Callable[[Batch[E]], None],
        least_s: float,
        thread_use: Callable[[int], ThreadUse | None] = lambda _: None,
    ) -> None:
        """Nothing is watched before the first look.

        Args:
            running: The batches in the workers.
            give_up: Called with each that is overdue, once.
            least_s: As `time_limit_s` has it.
            thread_use: Of a thread, by the system's id; None where the system does not tell.
        """
        self._running = running
        self._give_up = give_up
        self._least_s = least_s
        self._thread_use = thread_use
        self._looked_s: float | None = None
        self._watched: dict[Batch[E], _Watched] = {}

    def look(self, now_s: float) -> None:
        """Give up what is overdue.

        Args:
            now_s: Monotonic seconds.
        """
        passed_s = 0.0 if self._looked_s is None else min(now_s - self._looked_s, MOST_A_LOOK_S)
        self._looked_s = now_s
        before, self._watched = self._watched, {}
        for batch in self._running():
            watched = self._watched[batch] = before.get(batch, _Watched())
            use = self._thread_use(batch.thread_id) if batch.thread_id is not None else None
            # One that is seen for the first time has begun since the last look.
            watched.add(passed_s if batch in before else 0.0, use)
            if watched.held_s >= time_limit_s(batch.predicted_s, self._least_s):
                self._give_up(batch)
