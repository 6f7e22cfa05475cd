"""How late the event loop runs what is due: is it Python that is slow, or the model?"""

from __future__ import annotations

from collections.abc import Callable

from service.clock import Clock, Timer

# A stall of length t is met with probability t / period or more; ten probes a second cost nothing.
PERIOD_S = 0.1


class LoopLagProbe:
    """A timer that observes by how much it was late, again and again.

    Timers of the loop end on whole milliseconds, so up to one of lag is an idle loop's.
    """

    def __init__(
        self, clock: Clock, observe: Callable[[float], None], period_s: float = PERIOD_S
    ) -> None:
        """Set up; nothing runs before `start`.

        Args:
            clock: Monotonic time and its timers.
            observe: Told of each lag in seconds.
            period_s: Between the end of one probe and the next.
        """
        self._clock = clock
        self._observe = observe
        self._period_s = period_s
        self._due_s = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        """Probe from now on, until `stop`."""
        self._due_s = self._clock.now_s() + self._period_s
        self._timer = self._clock.call_at(self._due_s, self._tick)

    def stop(self) -> None:
        """Probe no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._observe(max(0.0, self._clock.now_s() - self._due_s))
        self.start()
