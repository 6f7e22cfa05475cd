"""How long the machine kept a thread waiting that lets all others go first.

The service's inference threads are such threads, and one that waits for a core may hold the
interpreter's lock meanwhile, so an answer can be late by no fault of the service. The witness is a
process of its own that sleeps for `EVERY_S` and says when it ran again: on an idle machine at once.

    python -m deploy.faults.witness     # a line of monotonic seconds for each time, until killed
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.cpu import give_way

EVERY_S = 0.01
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Wait:
    """A time in which the witness was due and did not run; monotonic seconds."""

    begin_s: float
    end_s: float

    def within_s(self, begin_s: float, end_s: float) -> float:
        """How much of it lies between two instants."""
        return max(0.0, min(self.end_s, end_s) - max(self.begin_s, begin_s))


class Witness:
    """Runs beside a scenario, as a context."""

    def __enter__(self) -> Self:
        """Start it."""
        self._told = tempfile.TemporaryFile()  # closed at the exit
        command = [sys.executable, "-m", "deploy.faults.witness"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=self._told)  # noqa: S603  # our own command
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        self._told.close()

    def waits(self) -> list[Wait]:
        """Until now."""
        now_s = time.monotonic()
        self._told.seek(0)
        lines = self._told.read().decode("ascii").splitlines(keepends=True)
        return waits([float(line) for line in lines if line.endswith("\n")], now_s)


def waits(ran_s: Sequence[float], now_s: float) -> list[Wait]:
    """When a witness waited that ran at these instants, and is due again since the last one.

    Args:
        ran_s: In order; none where it has not yet begun.
        now_s: Until when it was watched.
    """
    due_s = [instant_s + EVERY_S for instant_s in ran_s]
    ends_s = [*ran_s[1:], now_s]
    return [Wait(due, end) for due, end in zip(due_s, ends_s, strict=False) if end > due]


def main() -> None:
    """Say when it runs, as long as its parent lives."""
    parent = os.getppid()
    give_way()
    while os.getppid() == parent:
        print(time.monotonic(), flush=True)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
