"""How far a run is, on one line: a bar, the rate, and when it will end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

BAR_CHARS = 20
ON_TERMINAL_EVERY_S = 0.2
IN_LOG_EVERY_S = 30.0


class Progress:
    """Writes a line that a terminal shows in place, and a log file one now and then."""

    def __init__(self, out: TextIO, now_s: Callable[[], float], n_rows: int, n_before: int) -> None:
        """Begin to count.

        Args:
            out: Where to.
            now_s: Monotonic seconds.
            n_rows: In all.
            n_before: Done by the run that is resumed; they tell nothing of the speed.
        """
        self._out = out
        self._now_s = now_s
        self._n_rows = n_rows
        self._n_before = self._n_done = n_before
        self._started_s = now_s()
        self._in_place = out.isatty()
        self._every_s = ON_TERMINAL_EVERY_S if self._in_place else IN_LOG_EVERY_S
        self._next_s = self._started_s + self._every_s

    def advance(self, n_rows: int) -> None:
        """So many more are done."""
        self._n_done += n_rows
        now_s = self._now_s()
        if now_s >= self._next_s:
            self._next_s = now_s + self._every_s
            self._write(now_s - self._started_s)

    def end(self) -> float:
        """Leave the line as it is.

        Returns:
            Seconds from begin to end.
        """
        elapsed_s = self._now_s() - self._started_s
        if self._in_place:
            self._write(elapsed_s)
            self._out.write("\n")
        return elapsed_s

    def _write(self, elapsed_s: float) -> None:
        line = progress_line(self._n_done, self._n_rows, self._n_done - self._n_before, elapsed_s)
        self._out.write(f"\r{line}\x1b[K" if self._in_place else f"{line}\n")
        self._out.flush()


def progress_line(n_done: int, n_rows: int, n_now: int, elapsed_s: float) -> str:
    """The line.

    Args:
        n_done: Rows that are done, in all runs.
        n_rows: Of the input.
        n_now: Rows that this run has done.
        elapsed_s: That it took for them.
    """
    share = n_done / n_rows if n_rows else 1.0
    bar = "#" * int(share * BAR_CHARS)
    rate = n_now / elapsed_s if elapsed_s else 0.0
    left = _duration((n_rows - n_done) / rate) if rate else "?"
    return (
        f"[{bar:.<{BAR_CHARS}}] {int(share * 100)} %  {n_done:,} of {n_rows:,} rows  "
        f"{rate:,.0f} rows/s  {left} left"
    )


def _duration(seconds: float) -> str:
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest_s:02}"
