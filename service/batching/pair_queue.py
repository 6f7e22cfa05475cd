"""What waits to be computed, with the admission before it and the planner behind.

Guarded by the batcher's lock. The mutable state is the table of waiting pairs and the list of
their jobs, row by row the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

import numpy as np

from service.batching.admission import Candidate, Machine, Verdict, decide
from service.batching.cost_model import BatchCost
from service.batching.pair_job import NEVER_QUEUED, TAKEN, E, PairJob, PendingRequest
from service.batching.planner import BatchLimits, plan_batch
from service.batching.waiting import PairTable, WaitingPairs
from service.errors import DeadlineUnreachable, QueueFull

HEAD_START_BATCHES = 0.5
"""What a request can have done in the time of so many full batches is due when it comes. So small
requests are served one after the other, which ends each sooner than all at once, and only large
ones take turns. With more than 1 a small request could wait longer than two batches."""


class PairQueue(Generic[E]):
    """Waiting pairs, bounded in predicted seconds."""

    def __init__(self, limits: BatchLimits, *, workers: int, max_queue_s: float) -> None:
        self._limits = limits
        self._machine = Machine(workers, limits.max_pairs, max_queue_s)
        self._table = PairTable()
        self._jobs: list[PairJob[E]] = []

    def __len__(self) -> int:
        return len(self._jobs)

    def wait_s(self, cost: BatchCost) -> float:
        """Predicted seconds until all that waits has run."""
        lengths = self._table.columns().length_tokens
        return float(cost.share_s(lengths, self._limits.max_pairs).sum()) / self._machine.workers

    def check_room(
        self,
        request: PendingRequest,
        lengths: Sequence[int],
        cost: BatchCost,
        *,
        busy_s: float,
        caution: float,
        now_s: float,
    ) -> None:
        """Refuse a request that could not be served in time.

        Args:
            request: The request.
            lengths: Tokens of each pair that it would add; at least one.
            cost: Predicts.
            busy_s: Worker seconds left in the batches that run.
            caution: Factor on predictions where they are held against deadlines.
            now_s: Monotonic seconds.

        Raises:
            QueueFull: The queue would get longer than `max_queue_s`.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
        """
        tokens = np.asarray(lengths, dtype=np.float64)
        candidate = Candidate(
            work_s=float(cost.share_s(tokens, self._limits.max_pairs).sum()),
            longest_s=cost.batch_s(1, float(tokens.max())),
            deadline_s=request.deadline_s,
            priority=request.priority,
        )
        admission = decide(
            self._table.columns(),
            candidate,
            cost,
            self._machine,
            busy_s=busy_s,
            caution=caution,
            now_s=now_s,
        )
        wait_s, retry_s = admission.wait_s, admission.retry_after_s
        if admission.verdict is Verdict.QUEUE_FULL:
            raise QueueFull(wait_s, self._machine.max_queue_s, retry_s)
        if admission.verdict is Verdict.WOULD_BE_LATE:
            left_s = request.deadline_s - now_s
            raise DeadlineUnreachable(len(request.statuses), wait_s, left_s, retry_s)

    def add(
        self, request: PendingRequest, jobs: Sequence[PairJob[E]], cost: BatchCost, now_s: float
    ) -> None:
        """Queue a request's jobs, and hasten those that wait already for another one.

        Args:
            request: The request; each job has it among its subscribers.
            jobs: New ones, waiting ones and running ones, each once.
            cost: Predicts.
            now_s: Monotonic seconds.
        """
        longest_first = sorted(jobs, key=lambda job: -job.encoded.length_tokens)
        columns = self._schedule(request, longest_first, cost, now_s)
        rows = np.array([job.row for job in longest_first])
        if rows.max(initial=NEVER_QUEUED) > NEVER_QUEUED:
            waiting = np.flatnonzero(rows >= 0)
            self._table.hasten(rows[waiting], columns.rows(waiting))
            new = np.flatnonzero(rows == NEVER_QUEUED)
            longest_first, columns = [longest_first[place] for place in new], columns.rows(new)
        for row, job in enumerate(longest_first, start=len(self._jobs)):
            job.row = row
        self._jobs.extend(longest_first)
        self._table.append(columns)

    def take(
        self, cost: BatchCost, now_s: float, max_pairs: int
    ) -> tuple[list[PairJob[E]], list[PairJob[E]]]:
        """Remove the next batch, of at most `max_pairs` within the limits, and what is doomed.

        Returns:
            The batch, the doomed.
        """
        limits = replace(self._limits, max_pairs=min(max_pairs, self._limits.max_pairs))
        plan = plan_batch(self._table.columns(), limits, cost, now_s)
        batch = [self._jobs[row] for row in plan.batch.tolist()]
        doomed = [self._jobs[row] for row in plan.doomed.tolist()]
        for job in (*batch, *doomed):
            self._remove(job)
        return batch, doomed

    def drop_unwanted(self, jobs: Sequence[PairJob[E]]) -> list[PairJob[E]]:
        """Take out those of `jobs` that wait and that nobody waits for.

        Returns:
            What was taken out.
        """
        dropped = [job for job in jobs if job.row >= 0 and job.n_wanted == 0]
        for job in dropped:
            self._remove(job)
        return dropped

    def clear(self) -> list[PairJob[E]]:
        """Take out everything."""
        jobs = list(self._jobs)
        for job in jobs:
            self._remove(job)
        return jobs

    def _schedule(
        self, request: PendingRequest, jobs: Sequence[PairJob[E]], cost: BatchCost, now_s: float
    ) -> WaitingPairs:
        """The columns of a request's jobs, in the order in which they are to start."""
        n = len(jobs)
        lengths = np.fromiter((job.encoded.length_tokens for job in jobs), np.float64, n)
        pace_s = cost.share_s(lengths, self._limits.max_pairs) / self._machine.workers
        head_start_s = HEAD_START_BATCHES * cost.batch_s(self._limits.max_pairs, float(lengths[0]))
        passed_s = np.cumsum(pace_s) - pace_s  # until each one's turn, if it had the machine
        rest_s = np.maximum(pace_s.sum() - passed_s, cost.batch_s(1, lengths))
        return WaitingPairs(
            length_tokens=lengths,
            priority=np.full(n, float(request.priority)),
            due_s=now_s + np.maximum(0.0, passed_s - head_start_s),
            latest_start_s=request.deadline_s - rest_s,
            deadline_s=np.full(n, request.deadline_s),
        )

    def _remove(self, job: PairJob[E]) -> None:
        row = job.row
        moved = self._table.remove(row)
        last = self._jobs.pop()
        if moved != row:
            self._jobs[row] = last
            last.row = row
        job.row = TAKEN
