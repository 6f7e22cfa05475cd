"""Time, injected: one monotonic clock for deadlines, timers and durations."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that waits for its instant."""

    def cancel(self) -> None:
        """Make sure that it does not run; harmless when it has."""


class Clock(Protocol):
    """Monotonic seconds, and callbacks at an instant."""

    def now_s(self) -> float:
        """Monotonic seconds; only differences mean anything."""

    def call_at(self, when_s: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop once `now_s()` has reached `when_s`."""


class LoopClock:
    """The system's monotonic clock, with the running event loop's timers.

    Not the loop's own time: some loops round it to milliseconds, which is a tenth of an auction.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def now_s(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def call_at(self, when_s: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the event loop at `when_s`, or up to a millisecond later."""
        return self._loop.call_later(max(0.0, when_s - self.now_s()), callback)
