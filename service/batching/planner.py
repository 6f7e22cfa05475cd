"""Which waiting pairs run next: the whole batching policy, as one pure function.

Theory of operation. A batch is computed to the width of its longest pair, so its cost is that of
pairs x longest length, and mixing lengths is paid for in padding. Deadlines and fairness say which
pair must not wait; length says which others may come along for almost nothing. Hence:

1. Pairs that could not be done by their deadline even if they ran alone and now are *doomed*: they
   leave without a cost.
2. The *anchor* is the most urgent pair of the first priority class that waits. Where requests have
   little slack left (their latest start comes within the next batches), the least slack is the
   most urgent. Otherwise the earliest turn is.
3. The batch is the anchor with some of its neighbours in length, of its class: of all such
   batches that stay within the limits, and are predicted to end before the deadline of each pair
   in them, the one that takes the least time for a token. So how much padding is worth how full a
   batch is a matter of what runs cost here, on a CPU core or on a GPU.

Turns are in virtual time (weighted fair queueing; Demers, Keshav & Shenker 1989): it passes by the
work that is done, divided among the requests that wait. A small request's turn is when it comes.
The pairs of a large one, longest first, have theirs one after the other, as if it had its part of
the machine to itself. So a one-ad request does not wait for the 500 ads of another one, or of
several; and since virtual time never stands still, no stream of newcomers starves the 500 either.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.batching.cost_model import BatchCost
from service.batching.waiting import Floats, Rows, WaitingPairs

CRITICAL_BATCHES = 2
"""A request is urgent by its slack once that is less than so many full batches take."""

DISPATCH_S = 4e-4
"""What a batch costs beside its run: planning it, two changes of thread, handing out its logits."""


ABOUT_AS_NEAR = 0.04
"""Pairs whose lengths differ from the anchor's by less than this share are taken by urgency. Where
much waits, going by length alone would leave pairs of rare lengths behind for long."""

RESERVE = 1.2
"""A batch has to end so much sooner than predicted to suit a deadline: one pair too many would cost
all others theirs."""

NO_ROWS = np.empty(0, np.intp)

Urgency = tuple[float, float, float]

NEVER: Urgency = (math.inf, math.inf, math.inf)


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Ceilings of one batch.

    Attributes:
        max_pairs: Most pairs.
        max_padded_tokens: Most pairs x longest length; few on CPU threads, many on a GPU. A longer
            pair runs alone.
        max_padding_ratio: Most padding, as a share of the padded tokens.
    """

    max_pairs: int
    max_padded_tokens: int
    max_padding_ratio: float

    def full_pairs(self, length_tokens: float) -> int:
        """Pairs of one length that make a full batch; one that is longer than a batch is alone."""
        return max(1, min(self.max_pairs, int(self.max_padded_tokens // length_tokens)))

    def full_pairs_of(self, lengths_tokens: Floats) -> Floats:
        """(n,) the same for each of many lengths."""
        pairs: Floats = np.clip(self.max_padded_tokens // lengths_tokens, 1.0, self.max_pairs)
        return pairs


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Rows of the waiting pairs; what is in neither part goes on waiting.

    Attributes:
        batch: Run these together now. Empty only when all that waits is doomed.
        doomed: No batch can have them ready by their deadline.
        urgency: Of the anchor, to be held against that of other plans; the smallest goes first.
    """

    batch: Rows
    doomed: Rows
    urgency: Urgency = NEVER


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


def most_urgent(plans: Sequence[BatchPlan]) -> int:
    """Which of several models' batches runs next, while one takes over from another.

    Pairs of two models cannot share a batch, so each model's are planned by themselves. Between the
    plans the same decides that chose the anchors: class, then slack where it is short, then turn.

    Args:
        plans: At least one.
    """
    return min(range(len(plans)), key=lambda number: plans[number].urgency)


def plan_batch(
    waiting: WaitingPairs, limits: BatchLimits, cost: BatchCost, now_s: float
) -> BatchPlan:
    """Choose the next batch.

    Args:
        waiting: All that wait for one model.
        limits: Ceilings of the batch.
        cost: Predicts how long a batch takes.
        now_s: Monotonic seconds, of the same clock as the deadlines.

    Returns:
        Disjoint rows. The batch holds the most urgent pair that is not doomed, and keeps every
        limit, unless it is that pair alone.
    """
    doomed, rows = NO_ROWS, np.arange(len(waiting.deadline_s))
    if len(rows) == 0:
        return BatchPlan(NO_ROWS, NO_ROWS)
    longest = float(waiting.length_tokens.max())
    if waiting.deadline_s.min() < now_s + cost.batch_s(1, longest):
        late = waiting.deadline_s < now_s + cost.batch_s(1, waiting.length_tokens)
        doomed, rows = np.flatnonzero(late), np.flatnonzero(~late)
        if len(rows) == 0:
            return BatchPlan(NO_ROWS, doomed)
    priority = waiting.priority[rows]
    first = priority.min()
    if priority.max() > first:
        rows = rows[priority == first]  # the class whose turn it is
    critical_s = now_s + CRITICAL_BATCHES * cost.batch_s(limits.full_pairs(longest), longest)
    if len(rows) == 1:
        return BatchPlan(rows, doomed, _urgency_of(waiting, int(rows[0]), critical_s))
    waiting = waiting.rows(rows)
    urgency = _urgency(waiting, critical_s)
    anchor = int(urgency.argmin())
    near = _neighbours(waiting.length_tokens, urgency, anchor, 2 * limits.max_pairs)
    left_s = waiting.deadline_s[near] - now_s
    place = near.tolist().index(anchor)
    begin, end = _cheapest(
        waiting.length_tokens[near].tolist(), left_s.tolist(), place, limits, cost
    )
    return BatchPlan(rows[near[begin:end]], doomed, _urgency_of(waiting, anchor, critical_s))


def _urgency(waiting: WaitingPairs, critical_before_s: float) -> Floats:
    """(n,) in [0, 2), the most urgent first: those short of slack by slack, others by turn."""
    by_turn = _scaled(waiting.turn)
    if waiting.latest_start_s.min() >= critical_before_s:
        return by_turn
    critical = waiting.latest_start_s < critical_before_s
    return np.asarray(np.where(critical, _scaled(waiting.latest_start_s), 1.0 + by_turn))


def _urgency_of(waiting: WaitingPairs, row: int, critical_before_s: float) -> Urgency:
    """One pair's, such that it can be held against that of a pair in another table."""
    start_s = float(waiting.latest_start_s[row])
    start_s = start_s if start_s < critical_before_s else math.inf
    return float(waiting.priority[row]), start_s, float(waiting.turn[row])


def _scaled(instants_s: Floats) -> Floats:
    """Their order as numbers in [0, 1)."""
    earliest = instants_s.min()
    scaled: Floats = (instants_s - earliest) / (instants_s.max() - earliest + 1.0)
    return scaled


def _neighbours(lengths: Floats, urgency: Floats, anchor: int, n_most: int) -> Rows:
    """The anchor and the pairs next to it in length; among those about as near the urgent ones.

    Returns:
        At most `n_most` rows, ascending in length; those of one length with the urgent ones nearer
        to the anchor.
    """
    longer_by = lengths - lengths[anchor]
    distance = np.abs(longer_by)
    near = np.arange(len(distance))
    if len(distance) > n_most:
        # Steps of the distance, and within one step urgency (which is under 2).
        key = np.floor(distance / (ABOUT_AS_NEAR * lengths[anchor])) + 0.5 * urgency
        key[anchor] = -1.0
        near = np.argpartition(key, n_most)[:n_most]
    nearer = distance[near] + 0.25 * urgency[near]  # lengths are whole
    nearer[near == anchor] = 0.0
    return near[np.argsort(np.copysign(nearer, longer_by[near]))]


def _cheapest(
    lengths: Sequence[float],
    left_s: Sequence[float],
    anchor: int,
    limits: BatchLimits,
    cost: BatchCost,
) -> tuple[int, int]:
    """The batch around the anchor that takes the least time for a token.

    It grows from the anchor, each time by the neighbour on the side that makes a token cheaper;
    the best on the way is taken.

    Args:
        lengths: Tokens of each pair, ascending.
        left_s: Seconds until the deadline of each.
        anchor: Its place; alone it is always within the limits.
        limits: Ceilings.
        cost: Predicts.

    Returns:
        First place of the batch, and the one behind its last.
    """

    def token_s(begin: int, end: int, tokens: float, until_s: float) -> float:
        """Time for a token of such a batch; infinite where it is not allowed."""
        n_pairs, longest = end - begin, lengths[end - 1]
        padded, batch_s = n_pairs * longest, cost.batch_s(n_pairs, longest)
        allowed = (
            padded <= limits.max_padded_tokens
            and padded - tokens <= limits.max_padding_ratio * padded
            and (n_pairs == 1 or batch_s * RESERVE <= until_s)
        )
        return (batch_s + DISPATCH_S) / tokens if allowed else math.inf

    begin, end, tokens, until_s = anchor, anchor + 1, lengths[anchor], left_s[anchor]
    best, best_s = (begin, end), token_s(begin, end, tokens, until_s)
    while end - begin < limits.max_pairs:
        shorter_s = longer_s = math.inf
        if begin > 0:
            shorter_s = token_s(
                begin - 1, end, tokens + lengths[begin - 1], min(until_s, left_s[begin - 1])
            )
        if end < len(lengths):
            longer_s = token_s(begin, end + 1, tokens + lengths[end], min(until_s, left_s[end]))
        if math.inf == shorter_s == longer_s:
            break
        if shorter_s <= longer_s:
            begin -= 1
            added = begin
        else:
            added = end
            end += 1
        tokens += lengths[added]
        until_s = min(until_s, left_s[added])
        if min(shorter_s, longer_s) <= best_s:
            best, best_s = (begin, end), min(shorter_s, longer_s)
    return best
