"""When a worker that has ended is started again, and when that has become pointless."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """Exponential back-off, and an end to it. Pure: the times come from outside.

    Attributes:
        steady_s: A worker that served for so long has not failed, whatever ended it.
        first_delay_s: Before the second restart in a row; doubled for each one after it. The first
            is at once.
        max_delay_s: Longest delay.
        max_failures: One more in a row is a crash loop.
    """

    steady_s: float = 30.0
    first_delay_s: float = 0.1
    max_delay_s: float = 10.0
    max_failures: int = 5

    def failures(self, before: int, served_s: float) -> int:
        """Failures in a row, with the one that has just ended.

        Args:
            before: In a row before it.
            served_s: How long it served; 0 for one that never did.
        """
        return 1 if served_s >= self.steady_s else before + 1

    def delay_s(self, failures: int) -> float | None:
        """How long to wait before the next start; None when there should be none."""
        if failures > self.max_failures:
            return None
        if failures <= 1:
            return 0.0
        return float(min(self.max_delay_s, self.first_delay_s * 2.0 ** (failures - 2)))
