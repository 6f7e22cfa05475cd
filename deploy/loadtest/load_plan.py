"""Which loads are put on the service, in which order and for how long."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.loadtest.locust_run import LocustRun
from deploy.loadtest.user_counts import Shape

LOADS = (0.3, 0.6, 0.8, 0.9, 1.0, 1.3, 2.0)  # in multiples of the capacity
SETTLE_S = 1  # at the start of a run nothing is counted: its queue is not yet what it will be
CAPACITY_LEAD_S = 3  # the same for the closed loop, whose first answers all come at once
CAPACITY_USERS = 32
CAPACITY_TIMEOUT_MS = 10_000.0  # so long that nothing is given up on
USERS = 20
PEAK_USERS = 40
TIMELINE_LOADS = {"spike": (0.5, 2.0), "ramp": (0.05, 2.0)}  # around and in it; from and to

MAX_REQUESTS = 20_000  # of one run, however fast the service is


@dataclass(frozen=True, slots=True)
class Step:
    """One load.

    Attributes:
        load: In multiples of the capacity.
        requests_per_s: Mean arrivals.
        run: How to make it.
        counted_s: The end of the run, of which the figures are.
    """

    load: float
    requests_per_s: float
    run: LocustRun
    counted_s: int


def capacity_run(seconds: int) -> LocustRun:
    """A closed loop: as much as the service can do for callers who have time."""
    return LocustRun(
        seconds=CAPACITY_LEAD_S + seconds,
        users=CAPACITY_USERS,
        user_rps=0,
        timeout_ms=CAPACITY_TIMEOUT_MS,
    )


def steps(capacity_rps: float, loads: Sequence[float], seconds: int) -> list[Step]:
    """Constant arrival rates, the lowest first: what a high one leaves waiting spoils none.

    Args:
        capacity_rps: Requests a second.
        loads: Multiples of it.
        seconds: Counted of each, where that is not too many requests.
    """
    planned = []
    for load in sorted(loads):
        rate = load * capacity_rps
        counted_s = max(1, min(seconds, math.floor(MAX_REQUESTS / rate)))
        run = LocustRun(seconds=SETTLE_S + counted_s, users=USERS, user_rps=rate / USERS)
        planned.append(Step(load, rate, run, counted_s))
    return planned


def timeline_step(capacity_rps: float, shape: Shape, seconds: int) -> Step:
    """A load that changes, to be shown second by second.

    Args:
        capacity_rps: Requests a second.
        shape: ramp or spike.
        seconds: Of the whole run, where that is not too many requests.
    """
    base, peak = TIMELINE_LOADS[shape]
    rate = peak * capacity_rps
    bounded_s = max(5, min(seconds, math.floor(MAX_REQUESTS / rate)))
    run = LocustRun(
        seconds=bounded_s,
        users=PEAK_USERS,
        user_rps=rate / PEAK_USERS,
        shape=shape,
        base_users=max(1, round(PEAK_USERS * base / peak)),
    )
    return Step(peak, rate, run, bounded_s)
