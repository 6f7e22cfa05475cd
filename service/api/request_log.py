"""A line for each request that ended badly, and for every request where that is asked for.

No text of a query or an ad stands in it, nor an error's message, which may quote one.
"""

from __future__ import annotations

import logging
from collections import Counter
from typing import Any

from service.api.trace_context import trace_id_of
from service.clock import Clock
from service.log_limit import LINES_PER_S, WINDOW_S
from service.request_record import RequestRecord

logger = logging.getLogger(__name__)


class RequestLog:
    """Told of every request that has ended."""

    def __init__(self, clock: Clock, *, every_request: bool = False) -> None:
        """Set up.

        Args:
            clock: Its timers end the windows in which lines are counted.
            every_request: A line for each request, however it ended and however many come.
        """
        self._clock = clock
        self._every_request = every_request
        self._asked_for: Counter[str] = Counter()  # lines in the window of each outcome

    def __call__(self, record: RequestRecord) -> None:
        """Write its line, or count it as suppressed."""
        if self._every_request:
            _write(record)
        elif record.outcome != "ok":
            outcome = record.outcome
            if not self._asked_for[outcome]:
                end_s = self._clock.now_s() + WINDOW_S
                self._clock.call_at(end_s, lambda: self._end_window(outcome))
            self._asked_for[outcome] += 1
            if self._asked_for[outcome] <= LINES_PER_S * WINDOW_S:
                _write(record)

    def _end_window(self, outcome: str) -> None:
        suppressed = self._asked_for.pop(outcome) - int(LINES_PER_S * WINDOW_S)
        if suppressed > 0:
            logger.warning(
                "more requests ended so", extra={"outcome": outcome, "suppressed": suppressed}
            )


def _write(record: RequestRecord) -> None:
    level = logging.INFO if record.outcome == "ok" else logging.WARNING
    if logger.isEnabledFor(level):
        logger.log(level, "request", extra=_fields(record))


def _fields(record: RequestRecord) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "route": record.route,
        "outcome": record.outcome,
        "request_id": record.request_id,
        "n_ads": record.n_ads,
        "timing_ms": {"total": _ms(record.duration_s)},
    }
    if record.n_ads:
        fields["priority"] = record.priority.name.lower()
        fields["timeout_ms"] = _ms(record.timeout_s)
    if record.times is not None:
        fields["n_scored"] = sum(ad.score is not None for ad in record.scores)
        fields["slack_ms"] = _ms(record.slack_s)
        fields["timing_ms"] = record.times.in_ms() | fields["timing_ms"]
    trace_id = record.trace_id or trace_id_of(record.headers)
    if trace_id:
        fields["trace_id"] = trace_id
    return fields


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
