"""Evidence of an event loop that stands still, and an end to a stop that hangs.

Who looks at a stuck loop from outside sees that nothing answers. Why, only the stacks of its
threads can tell, and a restart takes them away; so they are written to the log beforehand.
"""

from __future__ import annotations

import contextlib
import faulthandler
import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable

logger = logging.getLogger(__name__)

PERIOD_S = 0.5

MOST_A_LOOK_S = 1.0
"""Time between two looks that is held against the loop, at most: where a look was later than that,
the whole process stood still."""

NO_PYTHON_FACTOR = 2.0
"""Where no Python runs at all, because native code keeps the interpreter's lock, this thread cannot
look either. The interpreter's fault handler, which needs no lock, writes plain stacks after so
many times the limit."""


class LoopWatch:
    """A thread beside the event loop, which has to `beat` many times a second.

    State: beats, the time that was watched since the last of them, when the process has to end.
    """

    def __init__(self, stuck_after_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        """Nothing is watched before `start`.

        Args:
            stuck_after_s: Without a beat for so long the loop is stuck.
            now_s: Monotonic seconds.
        """
        self._stuck_after_s = stuck_after_s
        self._now_s = now_s
        self._beats = self._beats_seen = 0
        self._looked_s = now_s()
        self._still_s = 0.0
        self._leave_at_s: float | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="loop-watch", daemon=True)

    def beat(self) -> None:
        """The loop turns."""
        self._beats += 1

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Watch no more. A limit that was set for leaving holds."""
        self._stopped.set()
        self._thread.join()
        if self._leave_at_s is None:
            faulthandler.cancel_dump_traceback_later()

    def leave_within(self, limit_s: float) -> None:
        """End the process with its stacks and exit code 1 if it is still there after `limit_s`.

        For signal handlers: takes no lock.
        """
        self._leave_at_s = self._now_s() + limit_s
        self._arm()

    def look(self) -> None:
        """See whether the loop has turned since the last look; say so once when it stands still."""
        now_s = self._now_s()
        step_s = min(now_s - self._looked_s, MOST_A_LOOK_S)
        self._looked_s = now_s
        was_stuck = self._still_s >= self._stuck_after_s
        if self._beats != self._beats_seen:
            self._beats_seen = self._beats
            if was_stuck:
                still_s = round(self._still_s, 1)
                logger.warning("the event loop turns again", extra={"stood_still_s": still_s})
            self._still_s = 0.0
            return
        self._still_s += step_s
        if not was_stuck and self._still_s >= self._stuck_after_s:
            logger.error(
                "the event loop stands still",
                extra={"for_s": round(self._still_s, 1), "stacks": stacks()},
            )

    def _watch(self) -> None:
        self._arm()
        while not self._stopped.wait(PERIOD_S):
            self.look()
            self._arm()

    def _arm(self) -> None:
        leave_at_s = self._leave_at_s
        limit_s = NO_PYTHON_FACTOR * self._stuck_after_s
        if leave_at_s is not None:
            limit_s = max(0.1, leave_at_s - self._now_s())
        with contextlib.suppress(OSError, ValueError, RuntimeError, AttributeError):  # no stderr
            faulthandler.dump_traceback_later(limit_s, exit=leave_at_s is not None)
        if leave_at_s is not self._leave_at_s:  # a signal came in between
            self._arm()


def stacks() -> dict[str, list[str]]:
    """Where each thread is, innermost call last: `file:line function`, by the thread's name."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    return {
        f"{names.get(ident, 'unknown')} ({ident})": [
            f"{frame.filename}:{frame.lineno} {frame.name}"
            for frame in traceback.extract_stack(top)
        ]
        for ident, top in sys._current_frames().items()
    }
