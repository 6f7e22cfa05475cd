"""Log lines written by a thread of their own: a stalled or broken stream costs lines, not answers.

A pipe whose reader has stopped blocks whoever writes to it. That must not be the event loop.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable
from typing import TextIO

MAX_WAITING_LINES = 1000
CLOSE_TIMEOUT_S = 1.0


class BackgroundHandler(logging.Handler):
    """Formats where the record is made, writes elsewhere; drops what cannot be written.

    How many lines were lost stands in a line of its own, once one can be written again.

    Attributes:
        on_lost: Told of each line that is lost, in whichever thread it was.
    """

    def __init__(self, stream: TextIO, max_waiting_lines: int = MAX_WAITING_LINES) -> None:
        """Start the thread.

        Args:
            stream: Where the lines go.
            max_waiting_lines: Beyond it lines are lost.
        """
        super().__init__()
        self.on_lost: Callable[[], None] = lambda: None
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(max_waiting_lines)
        self._lost_lines = 0
        self._thread = threading.Thread(target=self._write_all, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """Hand the record over; never raises and never waits."""
        try:
            self._lines.put_nowait(self.format(record))
        except Exception:  # no room, or a record that cannot be told: a log must not break its user
            self._lose()

    def close(self) -> None:
        """Write what waits, for a second at most; called at the interpreter's exit."""
        super().close()
        try:
            self._lines.put(None, timeout=CLOSE_TIMEOUT_S)
        except queue.Full:
            return
        self._thread.join(CLOSE_TIMEOUT_S)

    def _lose(self) -> None:
        self._lost_lines += 1
        self.on_lost()

    def _write_all(self) -> None:
        while (line := self._lines.get()) is not None:
            self._write(line)

    def _write(self, line: str) -> None:
        try:
            self._stream.write(f"{line}\n")
            self._stream.flush()
        except (OSError, ValueError):  # full or gone; closed, or what it cannot encode
            self._lose()
            return
        if self._lost_lines:
            lost, self._lost_lines = self._lost_lines, 0
            record = logging.makeLogRecord(
                {"name": __name__, "levelname": "WARNING", "msg": "log lines were lost"}
                | {"lost_lines": lost}
            )
            self._write(self.format(record))
