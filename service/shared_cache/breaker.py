"""When to leave redis alone: a circuit breaker as a pure policy, without clock and without I/O.

closed      lookups go out. Each tells how it ended; of the last `LAST_LOOKUPS`, `MAX_FAILED` that
            failed within `WINDOW_S` open it, and so does the loss of the connection.
open        no request asks, and none pays. At `retry_at_s` it is tried.
half_open   one attempt is under way, in the background: connect, log in, look two keys up. Its
            success closes the breaker, anything else opens it for about twice as long.

The pause grows until `STEADY_LOOKUPS` in a row have succeeded, so that a redis that answers one
question and no more is asked ever less often. It has jitter, so that replicas do not all come back
at the same instant (M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).

M. Nygard, "Release It!", 2007, chapter 5, on circuit breakers.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable

LAST_LOOKUPS = 10
MAX_FAILED = 5
WINDOW_S = 60.0
FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
STEADY_LOOKUPS = 20


class BreakerState(enum.StrEnum):
    """See the module."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Open at first, and to be tried at once.

    Attributes:
        state: As it stands.
        retry_at_s: Instant at which an open one is to be tried.
    """

    def __init__(self, random: Callable[[], float]) -> None:
        """Start open.

        Args:
            random: Numbers in 0-1, for the jitter.
        """
        self.state = BreakerState.OPEN
        self.retry_at_s = 0.0
        self._random = random
        self._n_openings = 0
        self._n_steady = 0
        # When each of the last lookups failed; None for one that did not.
        self._last: deque[float | None] = deque(maxlen=LAST_LOOKUPS)

    def succeeded(self) -> None:
        """A lookup was answered in time."""
        self._last.append(None)
        self._n_steady += 1
        if self._n_steady >= STEADY_LOOKUPS:
            self._n_openings = 0

    def failed(self, now_s: float) -> bool:
        """A lookup had no use.

        Returns:
            Whether this has opened the breaker.
        """
        self._last.append(now_s)
        self._n_steady = 0
        n_recent = sum(when_s is not None and now_s - when_s <= WINDOW_S for when_s in self._last)
        if self.state is not BreakerState.CLOSED or n_recent < MAX_FAILED:
            return False
        self.open(now_s)
        return True

    def open(self, now_s: float) -> None:
        """Leave redis alone for a while."""
        pause_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(self._n_openings, 30))
        self.state = BreakerState.OPEN
        self.retry_at_s = now_s + pause_s * (0.5 + 0.5 * self._random())
        self._n_openings += 1
        self._n_steady = 0

    def try_again(self) -> None:
        """An attempt begins."""
        self.state = BreakerState.HALF_OPEN

    def close(self) -> None:
        """The attempt has succeeded."""
        self.state = BreakerState.CLOSED
        self._last.clear()
