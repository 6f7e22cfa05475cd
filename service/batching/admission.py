"""Whether a request is taken: a pure function of what waits and what it would cost.

Theory of operation. Work of the classes before a request's own runs first; within its class the
machine can serve deadlines in their order, which meets all of them whenever that is possible at
all (earliest deadline first; Liu & Layland 1973, Dertouzos 1974). So a request is taken if, served
in that order at the predicted costs,

- the work before it and its own end by its deadline,
- nobody of its class who would be on time without it would be late with it,
- and the queue does not get longer, in seconds, than an operator allows.

Each class counts only itself and the classes before it. So when the machine is full of bulk
work auctions still come in, and bulk is what is refused first.

An idle machine takes everything: it has nothing better to do than what can be done in time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.batching.cost_model import BatchCost
from service.batching.waiting import WaitingPairs


@dataclass(frozen=True, slots=True)
class Candidate:
    """A request at the door.

    Attributes:
        work_s: Worker seconds that its pairs would add, in full batches.
        longest_s: Seconds that its longest pair takes alone: no number of workers is faster.
        deadline_s: When its answer must leave.
        priority: Its scheduling class.
    """

    work_s: float
    longest_s: float
    deadline_s: float
    priority: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is not taken.

    Attributes:
        queue_is_full: The queue is at its limit in seconds; otherwise a deadline would be missed.
        wait_s: Predicted seconds until the request would have been done.
        retry_after_s: Seconds after which the same request would probably be taken.
    """

    queue_is_full: bool
    wait_s: float
    retry_after_s: float


def refusal(
    waiting: WaitingPairs,
    candidate: Candidate,
    cost: BatchCost,
    *,
    busy_s: float,
    workers: int,
    max_pairs: int,
    max_queue_s: float,
    now_s: float,
) -> Refusal | None:
    """None where the request is to be taken.

    Args:
        waiting: All that wait.
        candidate: The request.
        cost: Predicts what the waiting pairs cost.
        busy_s: Worker seconds left in the batches that run.
        workers: Batches that run at once.
        max_pairs: Pairs in a full batch.
        max_queue_s: Longest queue, in seconds until it would be empty.
        now_s: Monotonic seconds.
    """
    work_s = cost.share_s(waiting.length_tokens, max_pairs)
    own_class = waiting.priority == candidate.priority
    before_s = busy_s + float(work_s[waiting.priority < candidate.priority].sum())
    own_work_s, deadline_s = work_s[own_class], waiting.deadline_s[own_class]
    queue_s = (before_s + float(own_work_s.sum())) / workers
    own_s = max(candidate.work_s / workers, candidate.longest_s)
    if queue_s + own_s > max_queue_s:
        return Refusal(True, queue_s + own_s, queue_s + own_s - max_queue_s)
    order = np.argsort(deadline_s)
    deadline_s = deadline_s[order]
    ends_s = now_s + (before_s + np.cumsum(own_work_s[order])) / workers
    place = int(np.searchsorted(deadline_s, candidate.deadline_s, side="right"))
    end_s = (float(ends_s[place - 1]) if place else now_s + before_s / workers) + own_s
    late_s = end_s - candidate.deadline_s
    if late_s > 0:
        return Refusal(False, end_s - now_s, late_s)
    behind, behind_deadline_s = ends_s[place:], deadline_s[place:]
    delay_s = candidate.work_s / workers
    pushed_out = (behind <= behind_deadline_s) & (behind + delay_s > behind_deadline_s)
    if pushed_out.any():
        return Refusal(False, end_s - now_s, delay_s)
    return None
