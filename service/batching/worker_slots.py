"""The batches in the workers, and how many workers there are to count on."""

from __future__ import annotations

from typing import Generic

from service.batching.batch import Batch
from service.batching.generation import E


class WorkerSlots(Generic[E]):
    """One slot for each worker; guarded by the batcher's lock.

    A batch that was given up keeps its slot: its thread is still in it. The slot is free again
    should that thread come back.

    Attributes:
        running: Batches that are expected to end.
        given_up: Batches that are not.
    """

    def __init__(self, workers: int) -> None:
        self.running: list[Batch[E]] = []
        self.given_up: list[Batch[E]] = []
        self._workers = workers

    @property
    def usable(self) -> int:
        """Workers that are not lost to a batch that never ends."""
        return self._workers - len(self.given_up)

    @property
    def idle(self) -> int:
        """Batches that can start now."""
        return self.usable - len(self.running)

    def start(self, batch: Batch[E]) -> None:
        """A batch takes a slot."""
        self.running.append(batch)

    def end(self, batch: Batch[E]) -> bool:
        """A batch leaves its slot.

        Returns:
            Whether its callers still wait; False where it had been given up.
        """
        if batch in self.given_up:
            self.given_up.remove(batch)
            return False
        self.running.remove(batch)
        return True

    def give_up(self, batch: Batch[E]) -> bool:
        """Expect nothing more of a batch.

        Returns:
            Whether it was running; it may have ended a moment ago.
        """
        if batch not in self.running:
            return False
        self.running.remove(batch)
        self.given_up.append(batch)
        return True
