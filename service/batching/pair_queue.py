"""What waits to be computed, with the admission before it and the planner behind.

Guarded by the batcher's lock. The mutable state is the waiting jobs of each generation, in tables;
which request each was queued by; and the virtual time. Nearly always there is one generation; while
one model takes over from another there are two, which share the admission, the turns and the
workers, but no batch.
"""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

import numpy as np

from service.batching.admission import Candidate, Machine, Verdict, decide
from service.batching.generation import E, Generation
from service.batching.job_table import JobTable
from service.batching.pair_job import NEVER_QUEUED, Claim, PairJob, PendingRequest
from service.batching.planner import BatchLimits, most_urgent, plan_batch
from service.batching.waiting import Floats, PairTable, WaitingPairs, joined
from service.errors import DeadlineUnreachable, QueueFull

SMALL_REQUEST_BATCHES = 2
"""A request that the machine could do in the time of so many full batches is small. Small ones are
served one after the other, which ends each sooner than all at once; larger ones take turns."""

ARRIVAL_S = 1e-6
"""Virtual seconds between two requests that come at the same virtual time; the pairs of a small one
are spread over half of it, so that the longest starts first and all end together."""


NOTHING = PairTable().columns()


class PairQueue(Generic[E]):
    """Waiting pairs, bounded in predicted seconds."""

    def __init__(self, limits: BatchLimits, *, workers: int, max_queue_s: float) -> None:
        self._limits = limits
        self._machine = Machine(workers, max_queue_s)
        self._tables: dict[Generation[E], JobTable[E]] = {}  # none of them is empty
        self._virtual_s = 0.0
        self._owner: dict[int, PendingRequest] = {}  # by id of the job
        self._waiting_of: collections.Counter[PendingRequest] = collections.Counter()

    def __len__(self) -> int:
        return len(self._owner)

    def full_pairs(self) -> int:
        """Pairs of a full batch of what waits, if all were of its mean length; something waits."""
        n_tokens = sum(
            float(table.columns().length_tokens.sum()) for table in self._tables.values()
        )
        return self._limits.full_pairs(n_tokens / len(self))

    def has(self, generation: Generation[E]) -> bool:
        """Some of its pairs wait."""
        return generation in self._tables

    def workers_are(self, workers: int) -> None:
        """Reckon with so many workers from now on; with one where none is left."""
        self._machine = replace(self._machine, workers=max(1, workers))

    def wait_s(self) -> float:
        """Predicted seconds until all that waits has run."""
        _, work_s = self._waiting()
        return float(work_s.sum()) / self._machine.workers

    def check_room(
        self,
        request: PendingRequest,
        generation: Generation[E],
        lengths: Sequence[int],
        *,
        busy_s: float,
        caution: float,
        now_s: float,
        is_idle: bool = False,
    ) -> None:
        """Refuse a request that could not be served in time.

        Args:
            request: The request.
            generation: The model that it wants.
            lengths: Tokens of each pair that it would add; at least one.
            busy_s: Worker seconds left in the batches that run.
            caution: Factor on predictions where they are held against deadlines.
            now_s: Monotonic seconds.
            is_idle: As `decide` has it.

        Raises:
            QueueFull: The queue would get longer than `max_queue_s`.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
        """
        tokens, cost = np.asarray(lengths, dtype=np.float64), generation.cost
        candidate = Candidate(
            work_s=float(cost.share_s(tokens, self._limits.full_pairs_of(tokens)).sum()),
            longest_s=cost.batch_s(1, float(tokens.max())),
            deadline_s=request.deadline_s,
            priority=request.priority,
        )
        waiting, work_s = self._waiting()
        admission = decide(
            waiting,
            work_s,
            candidate,
            self._machine,
            busy_s=busy_s,
            caution=caution,
            now_s=now_s,
            is_idle=is_idle,
        )
        wait_s, retry_s = admission.wait_s, admission.retry_after_s
        if admission.verdict is Verdict.QUEUE_FULL:
            raise QueueFull(wait_s, self._machine.max_queue_s, retry_s)
        if admission.verdict is Verdict.WOULD_BE_LATE:
            left_s = request.deadline_s - now_s
            raise DeadlineUnreachable(len(request.statuses), wait_s, left_s, retry_s)

    def new_work(self, request: PendingRequest, jobs: Sequence[PairJob[E]]) -> list[int]:
        """Lengths of the jobs that a request would add, or would bring forward from others."""
        table = self._tables.get(jobs[0].generation)
        columns, lengths = table.columns() if table is not None else NOTHING, []
        for job in jobs:
            sooner = job.row >= 0 and (
                columns.priority[job.row] > request.priority
                or columns.deadline_s[job.row] > request.deadline_s
            )
            if sooner or job.row == NEVER_QUEUED:
                lengths.append(job.encoded.length_tokens)
        return lengths

    def add(self, request: PendingRequest, jobs: Sequence[PairJob[E]]) -> None:
        """Queue a request's jobs, and let those that wait for another one serve it too.

        Args:
            request: The request; each job has it among its subscribers.
            jobs: New ones, waiting ones and running ones, each once and of one generation; at
                least one.
        """
        longest_first = sorted(jobs, key=lambda job: -job.encoded.length_tokens)
        columns = self._schedule(request, longest_first)
        claims = zip(longest_first, columns.turn.tolist(), columns.latest_start_s.tolist(),
                     strict=True)  # fmt: skip
        for job, turn, latest_start_s in claims:
            job.claims.append(Claim(request, turn, latest_start_s))
            if job.row >= 0:
                self._merge_claims(job)
        new = [place for place, job in enumerate(longest_first) if job.row == NEVER_QUEUED]
        if not new:  # a request that only shares is not one more that waits
            return
        table = self._tables.setdefault(jobs[0].generation, JobTable())
        table.append([longest_first[place] for place in new], columns.rows(np.array(new, np.intp)))
        self._waiting_of[request] += len(new)
        self._owner.update((id(longest_first[place]), request) for place in new)

    def take(
        self, now_s: float, max_pairs: int, max_padded_tokens: int | None = None
    ) -> tuple[list[PairJob[E]], list[PairJob[E]]]:
        """Remove the next batch, within the limits and these, and what is doomed.

        Args:
            now_s: Monotonic seconds.
            max_pairs: Most pairs of this batch.
            max_padded_tokens: Most padded tokens of it; a pair that has more runs alone.

        Returns:
            The batch, all of one generation, and the doomed, of any.
        """
        if not self._tables:
            return [], []
        limits = replace(
            self._limits,
            max_pairs=min(max_pairs, self._limits.max_pairs),
            max_padded_tokens=max_padded_tokens or self._limits.max_padded_tokens,
        )
        tables = list(self._tables.items())
        plans = [
            plan_batch(table.columns(), limits, generation.cost, now_s)
            for generation, table in tables
        ]
        chosen = most_urgent(plans)
        generation, table = tables[chosen]
        batch = table.jobs(plans[chosen].batch)
        doomed = [
            job
            for (_, table), plan in zip(tables, plans, strict=True)
            for job in table.jobs(plan.doomed)
        ]
        lengths = np.array([job.encoded.length_tokens for job in batch], dtype=np.float64)
        shares_s = generation.cost.share_s(lengths, self._limits.full_pairs_of(lengths))
        done_s = float(shares_s.sum())
        self._virtual_s += done_s / self._machine.workers / max(1, len(self._waiting_of))
        for job in (*batch, *doomed):
            self._remove(job)
        return batch, doomed

    def release(self, jobs: Sequence[PairJob[E]]) -> list[PairJob[E]]:
        """A request that wanted `jobs` has ended: what waits is as urgent as its other requests.

        Returns:
            Those that nobody wants any more, taken out.
        """
        dropped = []
        for job in jobs:
            if job.row < 0:
                continue
            job.forget_closed()
            if job.n_wanted == 0:
                self._remove(job)
                dropped.append(job)
            elif job.claims:
                self._merge_claims(job)
        return dropped

    def clear(self) -> list[PairJob[E]]:
        """Take out everything."""
        jobs = [job for table in self._tables.values() for job in table.all_jobs()]
        for job in jobs:
            self._remove(job)
        return jobs

    def _waiting(self) -> tuple[WaitingPairs, Floats]:
        """All that wait, and what each of them is predicted to cost its own model."""
        if not self._tables:
            return NOTHING, NOTHING.length_tokens
        waiting = [table.columns() for table in self._tables.values()]
        work_s = [
            generation.cost.share_s(
                columns.length_tokens, self._limits.full_pairs_of(columns.length_tokens)
            )
            for generation, columns in zip(self._tables, waiting, strict=True)
        ]
        if len(waiting) == 1:
            return waiting[0], work_s[0]
        return joined(waiting), np.concatenate(work_s)

    def _schedule(self, request: PendingRequest, jobs: Sequence[PairJob[E]]) -> WaitingPairs:
        """The columns of a request's jobs, in the order in which they are to start."""
        n, cost = len(jobs), jobs[0].generation.cost
        lengths = np.fromiter((job.encoded.length_tokens for job in jobs), np.float64, n)
        pace_s = cost.share_s(lengths, self._limits.full_pairs_of(lengths)) / self._machine.workers
        passed_s = np.cumsum(pace_s) - pace_s  # until each one starts, if it had the machine
        total_s = float(pace_s.sum())
        longest = float(lengths[0])
        full_batch_s = cost.batch_s(self._limits.full_pairs(longest), longest)
        in_order_s = np.linspace(0.0, ARRIVAL_S / 2, n)
        is_small = total_s <= SMALL_REQUEST_BATCHES * full_batch_s
        self._virtual_s += ARRIVAL_S
        return WaitingPairs(
            length_tokens=lengths,
            priority=np.full(n, float(request.priority)),
            turn=self._virtual_s + (in_order_s if is_small else passed_s + pace_s),
            latest_start_s=request.deadline_s
            - np.maximum(total_s - passed_s, cost.batch_s(1, lengths)),
            deadline_s=np.full(n, request.deadline_s),
        )

    def _merge_claims(self, job: PairJob[E]) -> None:
        """As urgent as the most urgent of its requests, as patient as the most patient."""
        requests = [claim.request for claim in job.claims]
        self._tables[job.generation].change(
            job,
            priority=min(request.priority for request in requests),
            turn=min(claim.turn for claim in job.claims),
            latest_start_s=min(claim.latest_start_s for claim in job.claims),
            deadline_s=max(request.deadline_s for request in requests),
        )

    def _remove(self, job: PairJob[E]) -> None:
        table = self._tables[job.generation]
        table.remove(job)
        if len(table) == 0:
            del self._tables[job.generation]
        owner = self._owner.pop(id(job))
        self._waiting_of[owner] -= 1
        if self._waiting_of[owner] == 0:
            del self._waiting_of[owner]
