"""Which waiting pairs run next: the whole batching policy, as one pure function.

Theory of operation. A batch is computed to the width of its longest pair, so its cost is
pairs x longest length, and mixing lengths is paid for in padding. Deadlines and fairness say which
pair must not wait; length says which others may come along for almost nothing. Hence:

1. Pairs nobody waits for any more, and pairs whose deadline has passed, leave without a cost.
2. The *anchor* is the most urgent live pair: priority class, then turn, then deadline; among
   equals the longest, since the long job started last is the one everybody waits for.
3. The batch is the anchor and the pairs of its class nearest to it in length, as long as the
   padded tokens stay in the budget and the padding stays small.

Turns make a large request share. Its pairs, sorted by length, are cut into batches; the first is
due at the batch number at which the request arrives, each further one a few batch numbers later
(virtual deadlines). So a one-ad request that comes behind one of 500 ads is due before all that is
left of it, and since the batch number only grows, no stream of newcomers starves the 500 either.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Waiting(Protocol):
    """What the planner needs to know of a waiting pair."""

    @property
    def length_tokens(self) -> int:
        """Tokens of the pair before padding."""

    @property
    def deadline_s(self) -> float:
        """Monotonic instant after which a score is of no use."""

    @property
    def priority(self) -> int:
        """Scheduling class; the smaller number first."""

    @property
    def turn(self) -> int:
        """Number of the batch in which the pair is due; fair between requests."""

    @property
    def arrival(self) -> int:
        """Running number of the pair; unique."""

    @property
    def abandoned(self) -> bool:
        """Nobody waits for this pair any more."""


W = TypeVar("W", bound=Waiting)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Ceilings of one batch.

    Attributes:
        max_pairs: Most pairs. Small on CPU threads, large on a GPU.
        max_padded_tokens: Most pairs x longest length. No single pair may be longer than this.
        max_padding_ratio: Most padding, as a share of the padded tokens.
    """

    max_pairs: int
    max_padded_tokens: int
    max_padding_ratio: float


@dataclass(frozen=True, slots=True)
class BatchPlan(Generic[W]):
    """A partition of the waiting pairs; each part keeps their order.

    Attributes:
        batch: Run these together now. Empty only when nothing live waits.
        expired: Their deadline has passed.
        abandoned: Nobody waits for them.
        left: Go on waiting.
    """

    batch: tuple[W, ...]
    expired: tuple[W, ...]
    abandoned: tuple[W, ...]
    left: tuple[W, ...]


def fair_batch_pairs(n_waiting: int, idle_workers: int, max_pairs: int) -> int:
    """Most pairs for each batch that starts now, so that the idle workers end together.

    20 pairs for two idle workers and at most 8 a batch: not 8 + 8 and then 4, which takes as long
    as 12 pairs in a row, but 5 + 5 and again 5 + 5, which takes as long as 10.

    Args:
        n_waiting: Pairs that wait; at least one.
        idle_workers: Batches that can start now; at least one.
        max_pairs: Most pairs that a batch may ever have.
    """
    n_batches = math.ceil(n_waiting / max_pairs)
    rounds = math.ceil(n_batches / idle_workers)
    return math.ceil(n_waiting / (rounds * idle_workers))


def plan_batch(waiting: Sequence[W], limits: BatchLimits, now_s: float) -> BatchPlan[W]:
    """Choose the next batch.

    Args:
        waiting: All that wait; not modified. Each is at most `limits.max_padded_tokens` long.
        limits: Ceilings of the batch.
        now_s: Monotonic seconds, of the same clock as the deadlines.

    Returns:
        A partition of `waiting`. The batch holds the most urgent live pair and keeps every limit.
    """
    abandoned = tuple(pair for pair in waiting if pair.abandoned)
    expired = tuple(p for p in waiting if not p.abandoned and p.deadline_s <= now_s)
    live = [p for p in waiting if not p.abandoned and p.deadline_s > now_s]
    if not live:
        return BatchPlan((), expired, abandoned, ())
    anchor = min(live, key=_urgency)
    peers = [p for p in live if p is not anchor and p.priority == anchor.priority]
    chosen = _fill(anchor, peers, limits)
    taken = {pair.arrival for pair in chosen}
    return BatchPlan(
        batch=tuple(p for p in live if p.arrival in taken),
        expired=expired,
        abandoned=abandoned,
        left=tuple(p for p in live if p.arrival not in taken),
    )


def _urgency(pair: Waiting) -> tuple[int, int, float, int, int]:
    return (pair.priority, pair.turn, pair.deadline_s, -pair.length_tokens, pair.arrival)


def _fill(anchor: W, peers: Sequence[W], limits: BatchLimits) -> list[W]:
    """The anchor and its nearest peers in length that keep the limits."""
    chosen, longest, tokens = [anchor], anchor.length_tokens, anchor.length_tokens
    nearest = heapq.nsmallest(
        limits.max_pairs - 1,
        peers,
        key=lambda pair: (abs(pair.length_tokens - anchor.length_tokens), *_urgency(pair)),
    )
    for pair in nearest:
        new_longest = max(longest, pair.length_tokens)
        new_tokens = tokens + pair.length_tokens
        padded_tokens = new_longest * (len(chosen) + 1)
        if padded_tokens > limits.max_padded_tokens:
            continue
        if padded_tokens - new_tokens > limits.max_padding_ratio * padded_tokens:
            continue
        chosen.append(pair)
        longest, tokens = new_longest, new_tokens
    return chosen
