"""The waiting jobs of one generation, with their columns: row i of both is the same pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from service.batching.generation import E
from service.batching.pair_job import TAKEN, PairJob
from service.batching.waiting import PairTable, Rows, WaitingPairs


class JobTable(Generic[E]):
    """Jobs that wait; each knows its row."""

    def __init__(self) -> None:
        self._table = PairTable()
        self._jobs: list[PairJob[E]] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def columns(self) -> WaitingPairs:
        """The pairs as they stand; a view that the next change makes invalid."""
        return self._table.columns()

    def jobs(self, rows: Rows) -> list[PairJob[E]]:
        """The jobs in some rows."""
        return [self._jobs[row] for row in rows.tolist()]

    def all_jobs(self) -> list[PairJob[E]]:
        """Every job, in the order of the rows."""
        return list(self._jobs)

    def append(self, jobs: Sequence[PairJob[E]], columns: WaitingPairs) -> None:
        """Add jobs behind the last row.

        Args:
            jobs: None of them waits.
            columns: Their pairs, in the same order.
        """
        for row, job in enumerate(jobs, start=len(self._jobs)):
            job.row = row
        self._jobs += jobs
        self._table.append(columns)

    def change(
        self,
        job: PairJob[E],
        *,
        priority: float,
        turn: float,
        latest_start_s: float,
        deadline_s: float,
    ) -> None:
        """Give a waiting pair another urgency."""
        self._table.change(
            job.row,
            priority=priority,
            turn=turn,
            latest_start_s=latest_start_s,
            deadline_s=deadline_s,
        )

    def remove(self, job: PairJob[E]) -> None:
        """Take a job out."""
        row = job.row
        moved = self._table.remove(row)
        last = self._jobs.pop()
        if moved != row:
            self._jobs[row] = last
            last.row = row
        job.row = TAKEN
