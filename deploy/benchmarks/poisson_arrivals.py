"""Instants at which independent callers come, and a clock that keeps to them."""

from __future__ import annotations

import asyncio
import itertools
import random
import threading
import time
from collections.abc import Callable, Iterator, Sequence


def endless_arrivals_s(rate_per_s: float, seed: int | str) -> Iterator[float]:
    """Seconds after the start, in order, without end; the same for the same seed."""
    rng = random.Random(seed)  # noqa: S311  # the same arrivals in every run
    return itertools.accumulate(iter(lambda: rng.expovariate(rate_per_s), None))


def arrivals_s(rate_per_s: float, duration_s: float, seed: int) -> list[float]:
    """Those of `endless_arrivals_s` before `duration_s`."""
    arrivals = endless_arrivals_s(rate_per_s, seed)
    return list(itertools.takewhile(lambda at_s: at_s < duration_s, arrivals))


async def pace(instants_s: Sequence[float], arrive: Callable[[int, float], None]) -> None:
    """Call `arrive` in the loop at each instant.

    A thread keeps the time, because the loop's own timers are up to a millisecond late.
    """
    loop = asyncio.get_running_loop()
    stopped = threading.Event()
    started_s = time.perf_counter()

    def keep_time() -> None:
        for number, at_s in enumerate(instants_s):
            if stopped.wait(max(0.0, started_s + at_s - time.perf_counter())):
                return
            loop.call_soon_threadsafe(arrive, number, started_s + at_s)

    try:
        await asyncio.to_thread(keep_time)
    finally:
        stopped.set()
