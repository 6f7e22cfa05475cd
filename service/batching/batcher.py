"""The dull loop: whenever a worker is idle and something waits, plan a batch and run it.

There is no polling and no waiting for company: a batch is planned when pairs arrive and when one
ends. Pairs that arrive while all workers are busy are what later batches are made of.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic

from service.batching.batch import Batch, BatchDone
from service.batching.dispatch import Dispatch
from service.batching.generation import E, Generation
from service.batching.pair_job import PairJob, PendingRequest
from service.batching.planner import BatchLimits
from service.batching.split_run import Run
from service.clock import Clock
from service.domain import PairStatus
from service.errors import InferenceFailed

logger = logging.getLogger(__name__)


class Batcher(Generic[E]):
    """Batches across requests onto worker threads.

    A worker that ends a batch plans its next one itself: handing that over to the event loop and
    back left a core idle for as long as the loop was busy, 6 % of two cores. So what waits and what
    runs is guarded by one lock, held for a fraction of a millisecond. All else, the requests and
    their futures above all, belongs to the event loop.

    It knows no model: each job brings its own, and is run by no other.
    """

    def __init__(
        self,
        limits: BatchLimits,
        *,
        workers: int,
        max_queue_s: float,
        clock: Clock,
        on_batch: Callable[[BatchDone], None],
        on_worker_start: Callable[[], None] = lambda: None,
    ) -> None:
        """Set up; each worker thread starts with the first batch that needs it.

        Args:
            limits: Ceilings of a batch.
            workers: Threads, so batches that run at once.
            max_queue_s: Requests that would make the queue longer than this are refused.
            clock: Monotonic time.
            on_batch: Told of every batch that has ended.
            on_worker_start: Called in each worker thread before its first batch.
        """
        self._lock = threading.Lock()
        self._dispatch: Dispatch[E] = Dispatch(limits, workers=workers, max_queue_s=max_queue_s)
        self._clock = clock
        self._on_batch = on_batch
        self._executor = ThreadPoolExecutor(workers, "inference", initializer=on_worker_start)
        self._awaited: list[tuple[Callable[[], bool], asyncio.Event]] = []

    @property
    def queued_pairs(self) -> int:
        """Pairs that wait, not counting those in a running batch."""
        return len(self._dispatch.queue)

    @property
    def queued_s(self) -> float:
        """Predicted seconds until all that waits has run."""
        with self._lock:
            return self._dispatch.queue.wait_s()

    @property
    def running_batches(self) -> int:
        """Batches in the workers now, not counting those that were given up."""
        return len(self._dispatch.slots.running)

    @property
    def stuck_workers(self) -> int:
        """Workers in batches that were given up."""
        return len(self._dispatch.slots.given_up)

    @property
    def budget_tokens(self) -> int:
        """Most padded tokens of a batch now; under the limit for a while after memory ran out."""
        return self._dispatch.budget_tokens(self._clock.now_s())

    @property
    def usable_workers(self) -> int:
        """All other workers."""
        return self._dispatch.slots.usable

    def batches(self) -> list[Batch[E]]:
        """Those that run now."""
        with self._lock:
            return list(self._dispatch.slots.running)

    def give_up(self, batch: Batch[E]) -> None:
        """Expect nothing more of a batch: its pairs fail now, and its worker is not counted on.

        Should it come back all the same, its worker goes on with what waits then. With no worker
        left everybody who waits is told so, instead of waiting for a deadline in vain.
        """
        now_s = self._clock.now_s()
        with self._lock:
            left = self._dispatch.give_up(batch)
        if left is None:
            return
        took_s = now_s - batch.started_s
        error = InferenceFailed(f"a batch of {len(batch.jobs)} pairs did not end in {took_s:.1f} s")
        self._settle(batch, Run(error), now_s, ())
        for job in left:
            job.cut_off()
            job.settle(PairStatus.DEADLINE, None)  # nobody hears, but it is in flight no more

    def check_room(
        self, request: PendingRequest, generation: Generation[E], lengths: Sequence[int]
    ) -> None:
        """Refuse a request that could not be served in time.

        An idle machine refuses only what must be complete and cannot be.

        Args:
            request: The request.
            generation: The model that it wants.
            lengths: Tokens of each pair that it would add; at least one. May be guessed low, to
                find out before the texts are tokenized.

        Raises:
            QueueFull: The queue would get too long.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
            NotReady: The batcher drains.
        """
        with self._lock:
            self._dispatch.check_room(request, generation, lengths, self._clock.now_s())

    def submit(self, request: PendingRequest, jobs: Sequence[PairJob[E]]) -> None:
        """Queue one request's jobs; idle workers start on them at once.

        Args:
            request: Its `done` future ends with its last pair or when it is closed; a request
                that is closed before takes with it what nobody else waits for.
            jobs: At least one, each once and all of one generation; each has the request among
                its subscribers. Jobs of earlier requests that wait or run are shared.

        Raises:
            QueueFull: No room for all new jobs; none was admitted.
            DeadlineUnreachable: It, or one that was admitted before, would be late.
            NotReady: The batcher drains.
        """
        loop = asyncio.get_running_loop()
        with self._lock:
            was_predicted = self._dispatch.admit(request, jobs, self._clock.now_s())
            started, doomed = self._dispatch.batches_for_idle_workers(self._clock.now_s())
        request.jobs += jobs
        request.was_predicted |= was_predicted
        request.on_closed = functools.partial(self._ended, request)
        for job in doomed:
            job.settle(PairStatus.DEADLINE, None)
        for batch in started:
            try:
                self._executor.submit(self._work, loop, batch)
            except RuntimeError as error:  # no thread can be started
                with self._lock:
                    self._dispatch.slots.end(batch)
                self._settle(batch, Run(error), batch.started_s, ())

    async def finish(self, generation: Generation[E], timeout_s: float) -> bool:
        """Wait until none of a generation's pairs waits or runs; all others go on meanwhile.

        Args:
            generation: One that no new request begins with.
            timeout_s: Longest wait.

        Returns:
            Whether it has ended; if not, its pairs are finished all the same.
        """
        await self._until(lambda: not self._has(generation), timeout_s)
        return not self._has(generation)

    async def drain(self, timeout_s: float) -> int:
        """Take no more, finish what waits and stop the workers.

        Returns:
            Pairs that were cut off because `timeout_s` ran out; 0 is the clean end.
        """
        self._dispatch.draining = True
        await self._until(lambda: self._dispatch.is_empty, timeout_s)
        with self._lock:
            left = self._dispatch.clear()
        cut_pairs = sum(job.n_wanted for job in left)
        for job in left:
            job.cut_off()
        self._executor.shutdown(wait=False, cancel_futures=True)
        return cut_pairs

    def _has(self, generation: Generation[E]) -> bool:
        """Some of its pairs wait or run."""
        with self._lock:
            return self._dispatch.has(generation)

    def _work(self, loop: asyncio.AbstractEventLoop, batch: Batch[E] | None) -> None:
        """In a worker thread: run batches until nothing waits."""
        while batch is not None:
            ended = batch
            doomed: list[PairJob[E]] = []
            awaited = True
            ran = batch.run()
            ended_s = self._clock.now_s()
            batch = None
            try:
                with self._lock:
                    awaited = self._dispatch.end(ended, ran, ended_s)
                    batch, doomed = self._dispatch.batch_for_one_worker(self._clock.now_s())
            except Exception:  # a fault of ours: what has been computed must be told all the same
                logger.exception("the next batch could not be planned")
            settle = self._settle if awaited else self._settle_late
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to hear
                loop.call_soon_threadsafe(settle, ended, ran, ended_s, doomed)

    def _settle(
        self,
        batch: Batch[E],
        ran: Run,
        ended_s: float,
        doomed: Sequence[PairJob[E]],
    ) -> None:
        """On the event loop: tell everyone what became of their pairs."""
        try:
            for job in doomed:
                job.settle(PairStatus.DEADLINE, None)
            failed = not batch.settle(ran.outcome)
            self._on_batch(batch.done(ended_s, failed, ran.splits))
        finally:
            self._note_what_ended()

    def _settle_late(
        self, batch: Batch[E], _: Run, ended_s: float, doomed: Sequence[PairJob[E]]
    ) -> None:
        """On the event loop: a batch that was given up has come back; its callers have gone."""
        for job in doomed:
            job.settle(PairStatus.DEADLINE, None)
        took_s = round(ended_s - batch.started_s, 1)
        logger.warning("a stuck batch has ended; its thread works again", extra={"took_s": took_s})

    def _ended(self, request: PendingRequest) -> None:
        """Learn from a request that has ended, and drop what nobody waits for any more."""
        left_on_its_own = request.done.cancelled() or request.was_cut_off
        with self._lock:
            if request.was_predicted and not left_on_its_own:
                self._dispatch.learn(request.priority, was_late=request.is_late)
            dropped = self._dispatch.queue.release(request.jobs)
        for job in dropped:
            job.settle(PairStatus.DEADLINE, None)

    async def _until(self, has_ended: Callable[[], bool], timeout_s: float) -> None:
        """Wait for what ends with a batch or a request, or for the time to run out."""
        over = asyncio.Event()
        self._awaited.append((has_ended, over))
        self._note_what_ended()
        timer = self._clock.call_at(self._clock.now_s() + timeout_s, over.set)
        await over.wait()
        timer.cancel()
        self._awaited.remove((has_ended, over))

    def _note_what_ended(self) -> None:
        for has_ended, over in self._awaited:
            if has_ended():
                over.set()
