"""The dull loop: whenever a worker is idle and something waits, plan a batch and run it.

There is no polling and no waiting for company: the loop turns when pairs arrive and when a batch
ends. Pairs that arrive while all workers are busy are what later batches are made of.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.pair_queue import E, PairQueue, PendingRequest, QueuedPair
from service.batching.planner import BatchLimits, fair_batch_pairs
from service.clock import Clock
from service.domain import PairStatus, Priority
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
        inference_s: Seconds in the worker.
        failed: The model raised.
    """

    n_pairs: int
    tokens: int
    padded_tokens: int
    inference_s: float
    failed: bool


class Batcher(Generic[E]):
    """Batches across requests onto worker threads.

    The only mutable state beside the queue is the number of idle workers, the batches that run
    and whether it drains; only the event loop touches any of it.
    """

    def __init__(
        self,
        model: Model[E],
        limits: BatchLimits,
        *,
        workers: int,
        max_waiting_pairs: int,
        clock: Clock,
        on_batch: Callable[[BatchDone], None],
    ) -> None:
        """Set up; each worker thread starts with the first batch that needs it.

        Args:
            model: Runs one batch.
            limits: Ceilings of a batch.
            workers: Threads, so batches that run at once.
            max_waiting_pairs: More are refused at the door.
            clock: Monotonic time.
            on_batch: Told of every batch that has ended.
        """
        self._model = model
        self._queue: PairQueue[E] = PairQueue(limits, max_waiting_pairs)
        self._clock = clock
        self._on_batch = on_batch
        self._limits = limits
        self._workers = workers
        self._idle_workers = workers
        self._running: list[Sequence[QueuedPair[E]]] = []
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="inference")
        self._drained: asyncio.Event | None = None

    @property
    def queued_pairs(self) -> int:
        """Pairs that wait, not counting those in a running batch."""
        return len(self._queue)

    @property
    def running_batches(self) -> int:
        """Batches in the workers now."""
        return self._workers - self._idle_workers

    def submit(self, pairs: Sequence[E], deadline_s: float, priority: Priority) -> PendingRequest:
        """Queue one request's pairs; idle workers start on them before this returns.

        Args:
            pairs: At least one.
            deadline_s: Monotonic instant; pairs not started by then are dropped.
            priority: Scheduling class.

        Returns:
            The request, whose `done` future ends with its last pair or when it is closed.

        Raises:
            QueueFull: No room for all pairs; none was admitted.
            NotReady: The batcher drains.
        """
        if self._drained is not None:
            raise NotReady("draining before a stop; send the request to another replica")
        request = PendingRequest(len(pairs), deadline_s, priority, self._clock.now_s())
        self._queue.admit(request, pairs)
        self._start_batches()
        return request

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
        cut_pairs = self._queue.clear()
        for batch in self._running:
            for pair in batch:
                cut_pairs += not pair.request.closed
                pair.request.cut_off()
        self._executor.shutdown(wait=False, cancel_futures=True)
        return cut_pairs

    def _start_batches(self) -> None:
        if self._idle_workers == 0 or len(self._queue) == 0:
            return
        max_pairs = fair_batch_pairs(len(self._queue), self._idle_workers, self._limits.max_pairs)
        while self._idle_workers > 0 and len(self._queue) > 0:
            now_s = self._clock.now_s()
            plan = self._queue.take(now_s, max_pairs)
            for pair in plan.expired:
                pair.request.settle(pair.index, PairStatus.DEADLINE, None)
            if not plan.batch:
                break
            for pair in plan.batch:
                if pair.request.started_s is None:
                    pair.request.started_s = now_s
            try:
                run = asyncio.get_running_loop().run_in_executor(
                    self._executor, self._model.logits, [pair.encoded for pair in plan.batch]
                )
            except RuntimeError:  # no thread can be started
                logger.exception("batch of %d pairs could not start", len(plan.batch))
                self._settle(plan.batch, now_s, None)
                continue
            self._idle_workers -= 1
            self._running.append(plan.batch)
            run.add_done_callback(functools.partial(self._finish, plan.batch, now_s))

    def _finish(
        self,
        batch: Sequence[QueuedPair[E]],
        started_s: float,
        run: asyncio.Future[NDArray[np.float32]],
    ) -> None:
        self._idle_workers += 1
        self._running = [other for other in self._running if other is not batch]
        try:
            self._settle(batch, started_s, _outcome(run, len(batch)))
        finally:  # whatever went wrong above, the next batch must start
            self._start_batches()
            self._note_if_drained()

    def _settle(
        self,
        batch: Sequence[QueuedPair[E]],
        started_s: float,
        logits: NDArray[np.float32] | None,
    ) -> None:
        for row, pair in enumerate(batch):
            if logits is None or not np.isfinite(logits[row]).all():
                pair.request.settle(pair.index, PairStatus.FAILED, None)
            else:
                pair.request.settle(pair.index, PairStatus.OK, logits[row])
        lengths = [pair.length_tokens for pair in batch]
        self._on_batch(
            BatchDone(
                n_pairs=len(batch),
                tokens=sum(lengths),
                padded_tokens=len(batch) * max(lengths),
                inference_s=self._clock.now_s() - started_s,
                failed=logits is None,
            )
        )

    def _note_if_drained(self) -> None:
        idle = self._idle_workers == self._workers and len(self._queue) == 0
        if self._drained is not None and idle:
            self._drained.set()


def _outcome(run: asyncio.Future[NDArray[np.float32]], n_pairs: int) -> NDArray[np.float32] | None:
    """The logits of a finished run; None, with the reason logged, where there are none."""
    if run.cancelled():
        logger.warning("batch of %d pairs was cut off by the shutdown", n_pairs)
        return None
    error = run.exception()
    if error is not None:
        logger.error("batch of %d pairs failed", n_pairs, exc_info=error)
        return None
    logits = run.result()
    if len(logits) != n_pairs:
        logger.error("batch of %d pairs failed: the model returned %d rows", n_pairs, len(logits))
        return None
    return logits
