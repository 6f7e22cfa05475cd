"""The dull loop: whenever a worker is idle and something waits, plan a batch and run it.

There is no polling and no waiting for company: the loop turns when pairs arrive and when a batch
ends. Pairs that arrive while all workers are busy are what later batches are made of.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.cost_model import CostModel
from service.batching.pair_job import NOT_WAITING, E, PairJob, PendingRequest
from service.batching.pair_queue import PairQueue
from service.batching.planner import BatchLimits, fair_batch_pairs
from service.clock import Clock
from service.domain import PairStatus
from service.errors import NotReady

logger = logging.getLogger(__name__)

E_contra = TypeVar("E_contra", contravariant=True)


class Model(Protocol[E_contra]):
    """What runs a batch. Called from several threads at once."""

    def logits(self, pairs: Sequence[E_contra]) -> NDArray[np.float32]:
        """(n, k) logits in the order of the pairs."""


@dataclass(frozen=True, slots=True)
class BatchDone:
    """One batch has ended; the fields are what metrics and logs tell.

    Attributes:
        n_pairs: Pairs in the batch.
        tokens: Their tokens, special ones included.
        padded_tokens: Pairs x longest length: what was computed.
        predicted_s: Seconds that it was expected to take.
        inference_s: Seconds in the worker.
        failed: The model raised.
    """

    n_pairs: int
    tokens: int
    padded_tokens: int
    predicted_s: float
    inference_s: float
    failed: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Batch(Generic[E]):
    """A batch in a worker."""

    jobs: Sequence[PairJob[E]]
    padded_tokens: int
    started_s: float
    predicted_s: float


class Batcher(Generic[E]):
    """Batches across requests onto worker threads.

    The mutable state beside the queue and the cost model is the batches that run and whether it
    drains; only the event loop touches any of it.
    """

    def __init__(
        self,
        model: Model[E],
        limits: BatchLimits,
        *,
        workers: int,
        max_queue_s: float,
        cost_model: CostModel,
        clock: Clock,
        on_batch: Callable[[BatchDone], None],
    ) -> None:
        """Set up; each worker thread starts with the first batch that needs it.

        Args:
            model: Runs one batch.
            limits: Ceilings of a batch.
            workers: Threads, so batches that run at once.
            max_queue_s: Requests that would make the queue longer than this are refused.
            cost_model: Predicts batches and learns from them.
            clock: Monotonic time.
            on_batch: Told of every batch that has ended.
        """
        self._model = model
        self._queue: PairQueue[E] = PairQueue(limits, workers=workers, max_queue_s=max_queue_s)
        self._cost_model = cost_model
        self._clock = clock
        self._on_batch = on_batch
        self._limits = limits
        self._workers = workers
        self._running: list[_Batch[E]] = []
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="inference")
        self._drained: asyncio.Event | None = None

    @property
    def queued_pairs(self) -> int:
        """Pairs that wait, not counting those in a running batch."""
        return len(self._queue)

    @property
    def queued_s(self) -> float:
        """Predicted seconds until all that waits has run."""
        return self._queue.wait_s(self._cost_model.cost)

    @property
    def running_batches(self) -> int:
        """Batches in the workers now."""
        return len(self._running)

    def check_room(self, request: PendingRequest, lengths: Sequence[int]) -> None:
        """Refuse a request that could not be served in time; an idle machine refuses nothing.

        Args:
            request: The request.
            lengths: Tokens of each pair that it would add; at least one. May be guessed low, to
                find out before the texts are tokenized.

        Raises:
            QueueFull: The queue would get too long.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
            NotReady: The batcher drains.
        """
        if self._drained is not None:
            raise NotReady("draining before a stop; send the request to another replica")
        if len(self._queue) == 0 and len(self._running) < self._workers:
            return
        now_s = self._clock.now_s()
        left_s = (batch.started_s + batch.predicted_s - now_s for batch in self._running)
        self._queue.check_room(
            request,
            lengths,
            self._cost_model.cost,
            busy_s=sum(max(0.0, seconds) for seconds in left_s),
            now_s=now_s,
        )

    def submit(self, request: PendingRequest, jobs: Sequence[PairJob[E]]) -> None:
        """Queue one request's jobs; idle workers start on them before this returns.

        Args:
            request: Its `done` future ends with its last pair or when it is closed; a request
                that is closed before takes with it what nobody else waits for.
            jobs: Each once; each has the request among its subscribers. Jobs of earlier requests
                that wait or run are shared.

        Raises:
            QueueFull: No room for all new jobs; none was admitted.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
            NotReady: The batcher drains.
        """
        running = {id(job) for batch in self._running for job in batch.jobs}
        waiting = [job for job in jobs if id(job) not in running]
        lengths = [job.encoded.length_tokens for job in waiting if job.row == NOT_WAITING]
        if lengths:
            self.check_room(request, lengths)
        request.on_closed = functools.partial(self._queue.drop_unwanted, jobs)
        self._queue.add(request, waiting, self._cost_model.cost, self._clock.now_s())
        self._start_batches()

    async def drain(self, timeout_s: float) -> int:
        """Take no more, finish what waits and stop the workers.

        Returns:
            Pairs that were cut off because `timeout_s` ran out; 0 is the clean end.
        """
        self._drained = asyncio.Event()
        self._note_if_drained()
        timer = self._clock.call_at(self._clock.now_s() + timeout_s, self._drained.set)
        await self._drained.wait()
        timer.cancel()
        left = self._queue.clear()
        for batch in self._running:
            left.extend(batch.jobs)
        cut_pairs = sum(job.n_wanted for job in left)
        for job in left:
            job.cut_off()
        self._executor.shutdown(wait=False, cancel_futures=True)
        return cut_pairs

    def _start_batches(self) -> None:
        idle_workers = self._workers - len(self._running)
        if idle_workers == 0 or len(self._queue) == 0:
            return
        max_pairs = fair_batch_pairs(len(self._queue), idle_workers, self._limits.max_pairs)
        while len(self._running) < self._workers and len(self._queue) > 0:
            now_s, cost = self._clock.now_s(), self._cost_model.cost
            jobs, doomed = self._queue.take(cost, now_s, max_pairs)
            for job in doomed:
                job.settle(PairStatus.DEADLINE, None)
            if not jobs:
                if not self._running:
                    self._cost_model.doubt()
                break
            for job in jobs:
                job.started(now_s)
            longest = max(job.encoded.length_tokens for job in jobs)
            batch = _Batch(
                jobs, len(jobs) * longest, now_s, cost.batch_s(len(jobs), float(longest))
            )
            self._running.append(batch)
            try:
                self._executor.submit(self._run, asyncio.get_running_loop(), batch)
            except RuntimeError as error:  # no thread can be started
                self._running.remove(batch)
                self._settle(batch, error, now_s)

    def _run(self, loop: asyncio.AbstractEventLoop, batch: _Batch[E]) -> None:
        """In a worker thread: compute, and hand the outcome to the event loop."""
        outcome: NDArray[np.float32] | BaseException
        try:
            outcome = self._model.logits([job.encoded for job in batch.jobs])
        except BaseException as error:  # whatever it is, the callers must hear of it
            outcome = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear
            loop.call_soon_threadsafe(self._finish, batch, outcome, self._clock.now_s())

    def _finish(
        self, batch: _Batch[E], outcome: NDArray[np.float32] | BaseException, ended_s: float
    ) -> None:
        self._running.remove(batch)
        try:
            self._settle(batch, outcome, ended_s)
        finally:  # whatever went wrong above, the next batch must start
            self._start_batches()
            self._note_if_drained()

    def _settle(
        self, batch: _Batch[E], outcome: NDArray[np.float32] | BaseException, ended_s: float
    ) -> None:
        n_pairs, inference_s = len(batch.jobs), ended_s - batch.started_s
        logits = _checked(outcome, n_pairs)
        if logits is None:
            for job in batch.jobs:
                job.settle(PairStatus.FAILED, None)
        else:
            self._cost_model.observe(n_pairs, batch.padded_tokens, inference_s)
            finite = np.isfinite(logits.sum(axis=1))  # inf and NaN spread to a sum
            for row, job in enumerate(batch.jobs):
                if finite[row]:
                    job.settle(PairStatus.OK, logits[row])
                else:
                    job.settle(PairStatus.FAILED, None)
        self._on_batch(
            BatchDone(
                n_pairs=n_pairs,
                tokens=sum(job.encoded.length_tokens for job in batch.jobs),
                padded_tokens=batch.padded_tokens,
                predicted_s=batch.predicted_s,
                inference_s=inference_s,
                failed=logits is None,
            )
        )

    def _note_if_drained(self) -> None:
        if self._drained is not None and not self._running and len(self._queue) == 0:
            self._drained.set()


def _checked(
    outcome: NDArray[np.float32] | BaseException, n_pairs: int
) -> NDArray[np.float32] | None:
    """The logits of a finished run; None, with the reason logged, where there are none."""
    if isinstance(outcome, BaseException):
        logger.error("batch of %d pairs failed", n_pairs, exc_info=outcome)
        return None
    if len(outcome) != n_pairs:
        logger.error("batch of %d pairs failed: the model returned %d rows", n_pairs, len(outcome))
        return None
    return outcome
