"""Lines of one kind, a few a second: a caller must not fill a disk with what it sends."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

LINES_PER_S = 5
"""Of each kind: enough to see what happens, too few to fill a disk when everything fails."""

WINDOW_S = 1.0


@dataclass(slots=True)
class _Window:
    begin_s: float
    n_lines: int = 0


class FewOfEachKind(logging.Filter):
    """Lets the first lines of each message pass in each second.

    The first one of a later second has how many were left out before it, as `suppressed`.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        """Let all pass at first.

        Args:
            now_s: Monotonic seconds.
        """
        super().__init__()
        self._now_s = now_s
        self._windows: dict[str, _Window] = {}  # of each message, before its arguments are in it

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be written."""
        now_s = self._now_s()
        window = self._windows.setdefault(str(record.msg), _Window(now_s))
        if now_s >= window.begin_s + WINDOW_S:
            suppressed = window.n_lines - int(LINES_PER_S * WINDOW_S)
            if suppressed > 0:
                record.suppressed = suppressed
            window.begin_s, window.n_lines = now_s, 0
        window.n_lines += 1
        return window.n_lines <= LINES_PER_S * WINDOW_S
