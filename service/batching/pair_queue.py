"""What waits to be scored: pairs, and the requests that own them.

All of this is touched by the event loop alone. The only mutable state is: in `PairQueue` the list
of waiting pairs, the number of batches taken and the running number; in `PendingRequest` the
outcomes so far and when its first batch started.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.planner import BatchLimits, BatchPlan, plan_batch
from service.domain import PairStatus, Priority
from service.errors import QueueFull

TURN_STRIDE = 4
"""Under load a large request claims every fourth batch and leaves three to others. Larger protects
small requests more, and makes large ones later."""


class Encoded(Protocol):
    """What batching needs to know of an encoded pair."""

    @property
    def length_tokens(self) -> int:
        """Tokens before padding."""


E = TypeVar("E", bound=Encoded)


class PendingRequest:
    """One request in the queue: a single future for all its pairs.

    The future is done when every pair has an outcome, or when the request is closed before, at
    its deadline or because its caller has gone. What is known by then is the answer.

    Attributes:
        done: Resolves to None, never to an exception; cancelled with the caller that awaits it.
        logits: Per pair, (k,) float32, or None while or where there are none.
        statuses: Per pair; DEADLINE until another outcome is known.
        submitted_s: When it was queued, monotonic seconds.
        started_s: When its first batch started; None before.
        was_cut_off: The service stopped before every pair had an outcome.
    """

    def __init__(self, n_pairs: int, deadline_s: float, priority: Priority, now_s: float) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.logits: list[NDArray[np.float32] | None] = [None] * n_pairs
        self.statuses = [PairStatus.DEADLINE] * n_pairs
        self.deadline_s = deadline_s
        self.priority = priority
        self.submitted_s = now_s
        self.started_s: float | None = None
        self.was_cut_off = False
        self._unsettled_pairs = n_pairs

    @property
    def closed(self) -> bool:
        """Nobody waits for further outcomes."""
        return self.done.done()

    def close(self) -> None:
        """Stop waiting: what has no outcome yet stays without one, and costs nothing more."""
        if not self.done.done():
            self.done.set_result(None)

    def cut_off(self) -> None:
        """Stop waiting because the service stops."""
        if not self.closed:
            self.was_cut_off = True
            self.close()

    def settle(self, index: int, status: PairStatus, logits: NDArray[np.float32] | None) -> None:
        """Record one pair's outcome. After the request is closed it is dropped."""
        if self.closed:
            return
        self.statuses[index] = status
        self.logits[index] = logits
        self._unsettled_pairs -= 1
        if self._unsettled_pairs == 0:
            self.close()


@dataclass(frozen=True, slots=True, eq=False)
class QueuedPair(Generic[E]):
    """One waiting pair; satisfies `planner.Waiting`."""

    encoded: E
    request: PendingRequest
    index: int
    turn: int
    arrival: int
    length_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "length_tokens", self.encoded.length_tokens)

    @property
    def deadline_s(self) -> float:
        """The request's deadline."""
        return self.request.deadline_s

    @property
    def priority(self) -> int:
        """The request's scheduling class."""
        return self.request.priority

    @property
    def abandoned(self) -> bool:
        """The request is closed."""
        return self.request.closed


class PairQueue(Generic[E]):
    """A bounded store of waiting pairs with the planner in front."""

    def __init__(self, limits: BatchLimits, max_waiting_pairs: int) -> None:
        self._limits = limits
        self._max_waiting_pairs = max_waiting_pairs
        self._waiting: list[QueuedPair[E]] = []
        self._batches_taken = 0
        self._arrivals = itertools.count()

    def __len__(self) -> int:
        return len(self._waiting)

    def admit(self, request: PendingRequest, pairs: Sequence[E]) -> None:
        """Queue all pairs of a request, or none.

        Raises:
            QueueFull: They do not all fit.
        """
        if len(self._waiting) + len(pairs) > self._max_waiting_pairs:
            self._waiting = [pair for pair in self._waiting if not pair.abandoned]
        if len(self._waiting) + len(pairs) > self._max_waiting_pairs:
            raise QueueFull(len(self._waiting), self._max_waiting_pairs)
        by_length = sorted(range(len(pairs)), key=lambda index: -pairs[index].length_tokens)
        self._waiting.extend(
            QueuedPair(
                encoded=pairs[index],
                request=request,
                index=index,
                turn=self._batches_taken + TURN_STRIDE * (place // self._limits.max_pairs),
                arrival=next(self._arrivals),
            )
            for place, index in enumerate(by_length)
        )

    def take(self, now_s: float, max_pairs: int) -> BatchPlan[QueuedPair[E]]:
        """Remove and return the next batch of at most `max_pairs`, within the limits.

        Pairs that are out of time or unwanted leave with it.
        """
        limits = replace(self._limits, max_pairs=min(max_pairs, self._limits.max_pairs))
        plan = plan_batch(self._waiting, limits, now_s)
        self._waiting = list(plan.left)
        if plan.batch:
            self._batches_taken += 1
        return plan

    def clear(self) -> int:
        """Cut off all that waits; the callers get an answer instead of silence.

        Returns:
            How many pairs that were.
        """
        dropped, self._waiting = self._waiting, []
        wanted = [pair for pair in dropped if not pair.abandoned]
        for pair in wanted:
            pair.request.cut_off()
        return len(wanted)
