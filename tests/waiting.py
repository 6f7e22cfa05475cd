"""Waiting for what other processes and threads do: for a bounded time, and off their core."""

from __future__ import annotations

import time
from collections.abc import Callable

DEADLINE_S = 60  # of a machine that may be busy; alone it is milliseconds
BETWEEN_LOOKS_S = 0.01


def until(holds: Callable[[], bool], never: str = "it never came to hold") -> None:
    """Look again and again; fails with `never` when the time is over."""
    stop_s = time.monotonic() + DEADLINE_S
    while not holds():
        assert time.monotonic() < stop_s, never
        time.sleep(BETWEEN_LOOKS_S)
