"""Who waits for what: a request with one future, and the pairs that several requests may share.

All of this is touched by the event loop alone, but for `PairJob.row`, which is the queue's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from service.batching.generation import E, Generation
from service.domain import PairStatus, Priority

Logits = NDArray[np.float32]

NEVER_QUEUED = -2
TAKEN = -1


class PendingRequest:
    """One request: a single future for all its pairs.

    The future is done when every pair has an outcome, or when the request is closed before, at
    its deadline or because its caller has gone. What is known by then is the answer.

    Attributes:
        done: Resolves to None, never to an exception; cancelled with the caller that awaits it.
        logits: (n, k) float32; a row means something where the status has a score.
        statuses: Per pair; DEADLINE until another outcome is known.
        all_or_nothing: It is worth nothing unless every pair has a score.
        started_s: When its first batch started; None before.
        was_cut_off: The service stopped before every pair had an outcome.
        on_closed: Told once that the request has ended.
        jobs: What was queued for it.
        was_predicted: It was admitted because it was predicted to be on time.
    """

    def __init__(
        self,
        n_pairs: int,
        n_logits: int,
        deadline_s: float,
        priority: Priority,
        *,
        all_or_nothing: bool = False,
    ) -> None:
        """A request of which nothing is known yet.

        Args:
            n_pairs: n >= 1.
            n_logits: k outputs of the model for each.
            deadline_s: Monotonic instant at which the answer must be complete.
            priority: Scheduling class.
            all_or_nothing: See above.
        """
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.logits = np.zeros((n_pairs, n_logits), np.float32)
        self.statuses = [PairStatus.DEADLINE] * n_pairs
        self.deadline_s = deadline_s
        self.priority = priority
        self.all_or_nothing = all_or_nothing
        self.started_s: float | None = None
        self.was_cut_off = False
        self.on_closed: Callable[[], None] | None = None
        self.jobs: list[PairJob[Any]] = []
        self.was_predicted = False
        self._unsettled_pairs = n_pairs

    @property
    def is_late(self) -> bool:
        """Some pair got no score because there was no time for it."""
        return PairStatus.DEADLINE in self.statuses

    @property
    def closed(self) -> bool:
        """Nobody waits for further outcomes."""
        return self.done.done()

    def close(self) -> None:
        """Stop waiting: what has no outcome yet stays without one, and costs nothing more."""
        if not self.done.done():
            self.done.set_result(None)
        if self.on_closed is not None:
            told, self.on_closed = self.on_closed, None
            told()

    def cut_off(self) -> None:
        """Stop waiting because the service stops."""
        if not self.closed:
            self.was_cut_off = True
            self.close()

    def settle_cached(self, found: NDArray[np.bool_], logits: Logits) -> None:
        """Record all outcomes that were known before, at once.

        Args:
            found: (n,) whether there is one.
            logits: (n, k); a row means something where there is.
        """
        self.logits[found] = logits[found]
        self.statuses = [
            PairStatus.CACHED if hit else status
            for hit, status in zip(found.tolist(), self.statuses, strict=True)
        ]
        self._unsettled_pairs -= int(np.count_nonzero(found))
        if self._unsettled_pairs == 0:
            self.close()

    def settle(self, index: int, status: PairStatus, logits: Logits | None) -> None:
        """Record one pair's outcome. After the request is closed it is dropped."""
        if self.closed:
            return
        self.statuses[index] = status
        if logits is not None:
            self.logits[index] = logits
        self._unsettled_pairs -= 1
        if self._unsettled_pairs == 0:
            self.close()


class Claim(NamedTuple):
    """What one request wants of a pair: when its turn is, and by when the rest has to start."""

    request: PendingRequest
    turn: float
    latest_start_s: float


class PairJob(Generic[E]):
    """One pair that is to be computed once, for everyone who asked for it.

    Attributes:
        encoded: The pair.
        generation: The model that it was encoded for.
        row: Its row among the waiting pairs; `NEVER_QUEUED` before, `TAKEN` after.
        settled: Its outcome is known.
        claims: Of each request that queued it; the queue's.
    """

    __slots__ = ("_on_settled", "_subscribers", "claims", "encoded", "generation", "row", "settled")

    def __init__(
        self,
        encoded: E,
        generation: Generation[E],
        on_settled: Callable[[Logits | None], None] | None = None,
    ) -> None:
        """A job that nobody waits for yet.

        Args:
            encoded: The pair.
            generation: The model that it was encoded for.
            on_settled: Told its logits, or None where it ends without.
        """
        self.encoded = encoded
        self.generation = generation
        self.row = NEVER_QUEUED
        self.settled = False
        self.claims: list[Claim] = []
        self._on_settled = on_settled
        self._subscribers: list[tuple[PendingRequest, int]] = []

    def subscribe(self, request: PendingRequest, index: int) -> None:
        """Settle pair `index` of `request` too when the outcome is known."""
        self._subscribers.append((request, index))

    def forget_closed(self) -> None:
        """Drop the requests that wait no more."""
        self._subscribers = [one for one in self._subscribers if not one[0].closed]
        self.claims = [claim for claim in self.claims if not claim.request.closed]

    @property
    def n_wanted(self) -> int:
        """How many pairs of requests wait for it; at 0 nobody does."""
        return sum(not request.closed for request, _ in self._subscribers)

    def settle(
        self, status: PairStatus, logits: Logits | None, started_s: float | None = None
    ) -> None:
        """Hand the outcome to everyone who waits for it.

        Args:
            status: What became of it.
            logits: (k,) where it has any.
            started_s: When its batch started, where it had one.
        """
        self.settled = True
        if self._on_settled is not None:
            self._on_settled(logits)
        for request, index in self._subscribers:
            if request.started_s is None:
                request.started_s = started_s
            request.settle(index, status, logits)
        self._let_go()

    def cut_off(self) -> None:
        """The service stops: whoever waits for this pair gets what is there."""
        for request, _ in self._subscribers:
            request.cut_off()
        self._let_go()

    def _let_go(self) -> None:
        """Break the cycle with its requests, so that an ended one keeps no model from leaving."""
        self._subscribers, self.claims = [], []
