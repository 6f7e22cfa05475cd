"""Which waiting pairs run next: the whole batching policy, as one pure function.

Theory of operation. A batch is computed to the width of its longest pair, so its cost is that of
pairs x longest length, and mixing lengths is paid for in padding. Deadlines and fairness say which
pair must not wait; length says which others may come along for almost nothing. Hence:

1. Pairs that could not be done by their deadline even if they ran alone and now are *doomed*: they
   leave without a cost.
2. The *anchor* is the most urgent pair of the first priority class that waits. Where requests have
   little slack left (their latest start comes within the next batches), the least slack is the
   most urgent. Otherwise the earliest virtual due time is.
3. The batch is the anchor with some of its neighbours in length, of its class: of all such
   batches that stay within the limits, and are predicted to end before the deadline of each pair
   in them, the one that takes the least time for a token. So how much padding is worth how full a
   batch is a matter of what runs cost here, on a CPU core or on a GPU.

Virtual due times make a large request share. Its pairs, longest first, are due one after the other
at the pace at which the whole machine could compute them. So a one-ad request that comes behind
one of 500 ads is due before all that is left of it; and since what comes later is due later, no
stream of newcomers starves the 500 either.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from service.batching.cost_model import BatchCost
from service.batching.waiting import Floats, Rows, WaitingPairs

CRITICAL_BATCHES = 2
"""A request is urgent by its slack once that is less than so many full batches take."""

DISPATCH_S = 4e-4
"""What a batch costs beside its run: planning it, two changes of thread, handing out its logits."""


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
class BatchPlan:
    """Rows of the waiting pairs; what is in neither part goes on waiting.

    Attributes:
        batch: Run these together now. Empty only when all that waits is doomed.
        doomed: No batch can have them ready by their deadline.
    """

    batch: Rows
    doomed: Rows


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


def plan_batch(
    waiting: WaitingPairs, limits: BatchLimits, cost: BatchCost, now_s: float
) -> BatchPlan:
    """Choose the next batch.

    Args:
        waiting: All that wait. Each is at most `limits.max_padded_tokens` long.
        limits: Ceilings of the batch.
        cost: Predicts how long a batch takes.
        now_s: Monotonic seconds, of the same clock as the deadlines.

    Returns:
        Disjoint rows. The batch holds the most urgent pair that is not doomed, and keeps every
        limit.
    """
    doomed = waiting.deadline_s < now_s + cost.batch_s(1, waiting.length_tokens)
    eligible = np.flatnonzero(~doomed)
    if len(eligible) == 0:
        return BatchPlan(eligible, np.flatnonzero(doomed))
    priority = waiting.priority[eligible]
    rows = eligible[priority == priority.min()]  # the class whose turn it is
    if len(rows) == 1:
        return BatchPlan(rows, np.flatnonzero(doomed))
    lengths = waiting.length_tokens[rows]
    full_batch_s = cost.batch_s(limits.max_pairs, float(lengths.mean()))
    urgency = _urgency(waiting, rows, now_s + CRITICAL_BATCHES * full_batch_s)
    near, place = _neighbours(lengths, urgency, int(urgency.argmin()), limits.max_pairs - 1)
    time_left_s = waiting.deadline_s[rows[near]] - now_s
    first, last = _cheapest(lengths[near], time_left_s, place, limits, cost)
    return BatchPlan(rows[near[first : last + 1]], np.flatnonzero(doomed))


def _urgency(waiting: WaitingPairs, rows: Rows, critical_before_s: float) -> Floats:
    """(n,) in [0, 2), the most urgent first: those short of slack by slack, others by due time."""
    latest_start_s = waiting.latest_start_s[rows]
    critical = latest_start_s < critical_before_s
    by_slack, by_turn = _scaled(latest_start_s), 1.0 + _scaled(waiting.due_s[rows])
    return np.asarray(np.where(critical, by_slack, by_turn))


def _scaled(instants_s: Floats) -> Floats:
    """Their order as numbers in [0, 1)."""
    earliest = instants_s.min()
    scaled: Floats = (instants_s - earliest) / (instants_s.max() - earliest + 1.0)
    return scaled


def _neighbours(lengths: Floats, urgency: Floats, anchor: int, n_each_way: int) -> tuple[Rows, int]:
    """The pairs next to the anchor in length, those of one length with the urgent ones nearer.

    Returns:
        Rows by ascending length, at most `n_each_way` on either side; the place of the anchor.
    """
    longer_by = lengths - lengths[anchor]
    distance = np.abs(longer_by) + 0.25 * urgency  # urgency is under 2, lengths are whole
    longer_by[anchor] = np.nan
    shorter = _first(np.flatnonzero(longer_by < 0), distance, n_each_way)
    longer = _first(np.flatnonzero(longer_by >= 0), distance, n_each_way)
    return np.concatenate((shorter[::-1], [anchor], longer)), len(shorter)


def _first(rows: Rows, key: Floats, n_most: int) -> Rows:
    """The rows with the smallest keys, in order."""
    if len(rows) > n_most:
        rows = rows[np.argpartition(key[rows], n_most)[:n_most]]
    return rows[np.argsort(key[rows])]


def _cheapest(
    lengths: Floats, time_left_s: Floats, anchor: int, limits: BatchLimits, cost: BatchCost
) -> tuple[int, int]:
    """First and last place of the batch around the anchor that takes the least time for a token.

    Args:
        lengths: (m,) ascending.
        time_left_s: (m,) until each one's deadline.
        anchor: Its place; alone it is always within the limits.
        limits: Ceilings.
        cost: Predicts.
    """
    first = np.arange(anchor + 1)[:, None]  # (f, 1)
    last = np.arange(anchor, len(lengths))  # (l,)
    n_pairs = (last - first + 1).astype(np.float64)  # (f, l)
    longest = lengths[last]  # (l,)
    sums = np.concatenate(([0.0], np.cumsum(lengths)))
    tokens, padded = sums[last + 1] - sums[first], n_pairs * longest
    left_before = np.minimum.accumulate(time_left_s[anchor::-1])[::-1]
    left_after = np.minimum.accumulate(time_left_s[anchor:])
    batch_s = cost.batch_s(n_pairs, longest)
    within = (
        (n_pairs <= limits.max_pairs)
        & (padded <= limits.max_padded_tokens)
        & (padded - tokens <= limits.max_padding_ratio * padded)
        & (batch_s <= np.minimum(left_before[:, None], left_after))
    )
    within[anchor, 0] = True
    token_s = np.where(within, (batch_s + DISPATCH_S) / tokens, np.inf)
    best = np.unravel_index(token_s.argmin(), token_s.shape)
    return int(first[best[0], 0]), int(last[best[1]])
