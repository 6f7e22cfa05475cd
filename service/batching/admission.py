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

An idle machine takes everything, however long, of which a part is of use: it has nothing better to
do than what can be done in time. What must be complete it takes if that is possible at all, at the
plain predictions, since nobody else is there who could be made late.

Predictions of single batches do not add up to what a request really waits: there is padding, the
event loop needs the cores too, and requests take turns. `Caution` learns from the deadlines that
were missed how much more to reckon with. That costs little: when it matters there is more work than
can be done anyhow.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

import numpy as np

from service.batching.waiting import Floats, WaitingPairs


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
class Machine:
    """What requests are admitted to.

    Attributes:
        workers: Batches that run at once.
        max_queue_s: Longest queue, in predicted seconds until it would be empty.
    """

    workers: int
    max_queue_s: float


class Verdict(enum.Enum):
    """What is said to a request."""

    TAKEN = enum.auto()
    QUEUE_FULL = enum.auto()
    WOULD_BE_LATE = enum.auto()


@dataclass(frozen=True, slots=True)
class Admission:
    """The decision on a request.

    Attributes:
        verdict: Taken, or why not.
        wait_s: Predicted seconds until the request would be done.
        retry_after_s: Seconds after which a refused request would probably be taken.
    """

    verdict: Verdict
    wait_s: float
    retry_after_s: float = 0.0


class Caution:
    """The factor on predictions with which admitted requests are on time, but for a few.

    Each request that was not complete at its deadline raises the factor, each other one lowers it,
    in the proportion that leaves a share of `LATE_SHARE` late. Robbins & Monro 1951, "A Stochastic
    Approximation Method".
    """

    LATE_SHARE = 0.01
    STEP = 0.1
    FIRST, LEAST, MOST = 1.5, 1.2, 2.5

    def __init__(self) -> None:
        self.factor = self.FIRST

    def learn(self, was_late: bool) -> None:
        """Take in what became of an admitted request."""
        if was_late:
            self.factor = min(self.MOST, self.factor * (1 + self.STEP * (1 - self.LATE_SHARE)))
        else:
            self.factor = max(self.LEAST, self.factor * (1 - self.STEP * self.LATE_SHARE))


def decide(
    waiting: WaitingPairs,
    work_s: Floats,
    candidate: Candidate,
    machine: Machine,
    *,
    busy_s: float,
    caution: float,
    now_s: float,
    is_idle: bool = False,
) -> Admission:
    """Whether the request is to be taken.

    Args:
        waiting: All that wait, for whichever model.
        work_s: (n,) predicted worker seconds of each, in full batches.
        candidate: The request.
        machine: What it would be admitted to.
        busy_s: Worker seconds left in the batches that run.
        caution: Factor on predictions where they are held against deadlines.
        now_s: Monotonic seconds.
        is_idle: Nothing waits and a worker is free; for a request that must be complete.
    """
    if is_idle:
        caution = 1.0
    own_class = waiting.priority == candidate.priority
    before_s = busy_s + float(work_s[waiting.priority < candidate.priority].sum())
    own_work_s, deadline_s = work_s[own_class], waiting.deadline_s[own_class]
    queue_s = (before_s + float(own_work_s.sum())) / machine.workers
    own_s = max(candidate.work_s / machine.workers, candidate.longest_s)
    too_long_s = queue_s + own_s - machine.max_queue_s
    if too_long_s > 0 and not is_idle:
        return Admission(Verdict.QUEUE_FULL, queue_s + own_s, too_long_s)
    order = np.argsort(deadline_s)
    deadline_s = deadline_s[order]
    pace = caution / machine.workers
    ends_s = now_s + (before_s + np.cumsum(own_work_s[order])) * pace
    place = int(np.searchsorted(deadline_s, candidate.deadline_s, side="right"))
    start_s = float(ends_s[place - 1]) if place else now_s + before_s * pace
    end_s = start_s + own_s * caution
    late_s = end_s - candidate.deadline_s
    if late_s > 0:
        return Admission(Verdict.WOULD_BE_LATE, end_s - now_s, late_s)
    behind, behind_deadline_s = ends_s[place:], deadline_s[place:]
    delay_s = candidate.work_s * pace
    pushed_out = (behind <= behind_deadline_s) & (behind + delay_s > behind_deadline_s)
    if pushed_out.any():
        return Admission(Verdict.WOULD_BE_LATE, end_s - now_s, delay_s)
    return Admission(Verdict.TAKEN, end_s - now_s)
