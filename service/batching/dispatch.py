"""What waits and what runs, seen as one: who is taken in, and which batch starts next.

No threads, no futures and no clock: `batcher.py` has those, and calls this under its lock.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Generic

from service.batching.admission import Caution
from service.batching.batch import Batch
from service.batching.generation import E, Generation
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.pair_queue import PairQueue
from service.batching.planner import BatchLimits, fair_batch_pairs
from service.batching.split_run import Run
from service.batching.token_budget import TokenBudget
from service.batching.worker_slots import WorkerSlots
from service.domain import Priority
from service.errors import DeadlineUnreachable, NotReady

logger = logging.getLogger(__name__)


class Dispatch(Generic[E]):
    """The queue, the workers' slots and what bounds both; guarded by the batcher's lock.

    Mutable state besides those two: the token budget, and what each class has learned of
    predictions. The cost models of the generations learn here too.

    Attributes:
        queue: Pairs that wait.
        slots: Batches that run.
        draining: New work is refused.
    """

    def __init__(self, limits: BatchLimits, *, workers: int, max_queue_s: float) -> None:
        self.queue: PairQueue[E] = PairQueue(limits, workers=workers, max_queue_s=max_queue_s)
        self.slots: WorkerSlots[E] = WorkerSlots(workers)
        self.draining = False
        self._budget = TokenBudget(limits.max_padded_tokens, limits.max_padded_tokens)
        self._caution = {priority: Caution() for priority in Priority}

    @property
    def is_empty(self) -> bool:
        """Nothing waits and nothing runs."""
        return not self.slots.running and len(self.queue) == 0

    def budget_tokens(self, now_s: float) -> int:
        """Most padded tokens of a batch."""
        return self._budget.at(now_s).tokens

    def has(self, generation: Generation[E]) -> bool:
        """Some of its pairs wait or run."""
        return self.queue.has(generation) or any(
            batch.generation is generation for batch in self.slots.running
        )

    def check_room(
        self,
        request: PendingRequest,
        generation: Generation[E],
        lengths: Sequence[int],
        now_s: float,
    ) -> None:
        """Refuse a request that could not be served in time.

        Args:
            request: The request.
            generation: The model that it wants.
            lengths: Tokens of each pair that it would add; at least one.
            now_s: Monotonic seconds.

        Raises:
            QueueFull: The queue would get too long.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
            NotReady: New work is refused, or no worker is left.
        """
        if self.draining:
            raise NotReady("draining before a stop; send the request to another replica")
        if self.slots.usable == 0:
            raise NotReady("every inference thread is stuck; send the request to another replica")
        is_idle = self._is_idle()
        if is_idle and not request.all_or_nothing:
            return
        left_s = (batch.started_s + batch.predicted_s - now_s for batch in self.slots.running)
        try:
            self.queue.check_room(
                request,
                generation,
                lengths,
                busy_s=sum(max(0.0, seconds) for seconds in left_s),
                caution=self._caution[request.priority].factor,
                now_s=now_s,
                is_idle=is_idle,
            )
        except DeadlineUnreachable:
            if not self.slots.running:
                generation.cost_model.doubt()
            raise

    def admit(self, request: PendingRequest, jobs: Sequence[PairJob[E]], now_s: float) -> bool:
        """Queue a request's jobs, if there is room for what is new of them.

        Returns:
            Whether its deadline was held against a prediction.

        Raises:
            ServiceError: As `check_room` does; nothing was queued.
        """
        lengths = self.queue.new_work(request, jobs)
        was_idle = self._is_idle()
        if lengths:
            self.check_room(request, jobs[0].generation, lengths, now_s)
        self.queue.add(request, jobs)
        return bool(lengths) and not was_idle

    def learn(self, priority: Priority, *, was_late: bool) -> None:
        """A request whose deadline was held against a prediction has ended."""
        self._caution[priority].learn(was_late=was_late)

    def batches_for_idle_workers(self, now_s: float) -> tuple[list[Batch[E]], list[PairJob[E]]]:
        """Batches that start now, and jobs that no batch can have ready in time."""
        started: list[Batch[E]] = []
        doomed: list[PairJob[E]] = []
        idle_workers = self.slots.idle
        if idle_workers and len(self.queue):
            max_pairs = fair_batch_pairs(len(self.queue), idle_workers, self.queue.full_pairs())
            while len(started) < idle_workers and len(self.queue):
                batch, late = self._next_batch(max_pairs, now_s)
                doomed += late
                if batch is None:
                    break
                started.append(batch)
        return started, doomed

    def batch_for_one_worker(self, now_s: float) -> tuple[Batch[E] | None, list[PairJob[E]]]:
        """The batch that starts now, if any, and jobs that no batch can have ready in time."""
        if not len(self.queue):
            return None, []
        max_pairs = fair_batch_pairs(len(self.queue), 1, self.queue.full_pairs())
        return self._next_batch(max_pairs, now_s)

    def end(self, batch: Batch[E], ran: Run, ended_s: float) -> bool:
        """A batch has run; learn from it.

        Returns:
            Whether its callers still wait; False where it had been given up.
        """
        awaited = self.slots.end(batch)
        if not awaited:
            self.queue.workers_are(self.slots.usable)
        if ran.too_large_tokens is not None:
            self._follow(self._budget.lowered(ran.too_large_tokens, ended_s))
        elif awaited and not isinstance(ran.outcome, BaseException):
            batch.generation.cost_model.observe(
                len(batch.jobs), batch.padded_tokens, ended_s - batch.started_s
            )
        return awaited

    def give_up(self, batch: Batch[E]) -> list[PairJob[E]] | None:
        """Expect nothing more of a batch, and count on one worker less.

        Returns:
            What waits in vain, since no worker is left; None where the batch does not run.
        """
        if not self.slots.give_up(batch):
            return None
        self.queue.workers_are(self.slots.usable)
        return [] if self.slots.usable else self.queue.clear()

    def clear(self) -> list[PairJob[E]]:
        """All that waits, taken out, and all that runs."""
        jobs = self.queue.clear()
        for batch in self.slots.running:
            jobs.extend(batch.jobs)
        return jobs

    def _is_idle(self) -> bool:
        return len(self.queue) == 0 and self.slots.idle > 0

    def _next_batch(self, max_pairs: int, now_s: float) -> tuple[Batch[E] | None, list[PairJob[E]]]:
        self._follow(self._budget.at(now_s))
        jobs, doomed = self.queue.take(now_s, max_pairs, self._budget.tokens)
        if not jobs:
            if not self.slots.running:
                for generation in {job.generation for job in doomed}:
                    generation.cost_model.doubt()
            return None, doomed
        longest = max(job.encoded.length_tokens for job in jobs)
        predicted_s = jobs[0].generation.cost.batch_s(len(jobs), float(longest))
        batch = Batch(jobs, len(jobs) * longest, now_s, predicted_s)
        self.slots.start(batch)
        return batch, doomed

    def _follow(self, budget: TokenBudget) -> None:
        """Take a budget over; the log has the beginning and the end of a shortage."""
        if budget.is_short and not self._budget.is_short:
            logger.warning("out of memory; batches are smaller", extra={"tokens": budget.tokens})
        elif self._budget.is_short and not budget.is_short:
            logger.info("memory suffices again", extra={"tokens": budget.tokens})
        self._budget = budget
