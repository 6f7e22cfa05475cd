"""The instant by which a call must have ended, and how much of that the service may use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from service.client.arguments import number

MIN_TIMEOUT_MS = 1e-3
MAX_TIMEOUT_MS = 60_000  # the service's `max_timeout_ms`, unless it is set to another
MARGIN_SHARE = 0.25  # the most of what is left that is kept back for the network


@dataclass(frozen=True, slots=True)
class Deadline:
    """An instant on a monotonic clock.

    Attributes:
        clock: Monotonic seconds.
        started_s: When the call began.
        ends_s: When it must have ended.
    """

    clock: Callable[[], float]
    started_s: float
    ends_s: float

    @classmethod
    def after(cls, timeout_ms: float, clock: Callable[[], float]) -> Deadline:
        """The deadline of a call that begins now.

        Args:
            timeout_ms: A number of any kind.
            clock: Monotonic seconds.

        Raises:
            TypeError: No number.
            ValueError: Less than `MIN_TIMEOUT_MS`, or more than `MAX_TIMEOUT_MS`.
        """
        asked_ms = number("timeout_ms", timeout_ms, MIN_TIMEOUT_MS, MAX_TIMEOUT_MS, "milliseconds")
        now_s = clock()
        return cls(clock, now_s, now_s + asked_ms / 1000)

    def left_s(self) -> float:
        """Seconds until the deadline; 0 or less when it has passed."""
        return self.ends_s - self.clock()

    def elapsed_ms(self) -> float:
        """Milliseconds since the call began."""
        return (self.clock() - self.started_s) * 1000


def service_timeout_ms(left_s: float, network_margin_ms: float) -> float:
    """What the service is told: what is left, less the way there and back.

    Of a short time at most a quarter is kept back.
    """
    left_ms = left_s * 1000
    return left_ms - min(network_margin_ms, MARGIN_SHARE * left_ms)
