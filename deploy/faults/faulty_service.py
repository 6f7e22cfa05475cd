"""The service with faults that can be switched on while it runs.

    python -m deploy.faults.faulty_service --fault-file FILE [options of the service]

What the file holds decides what the next runs of the model do: nothing (or no file) is a sound
machine. Faults are put in at the service's edges, into ONNX Runtime and the clock; its own code is
as it is served.

    fail             every run raises
    hang             runs do not return until the file holds something else
    hang-first       as hang, but one run alone hangs
    die              the thread of the next run ends, without a word to Python
    memory TOKENS    runs of more padded tokens than that are out of memory
    slow SECONDS     every run takes so much longer
    clock SECONDS    the wall clock jumps by so much whenever it is read, back and forth

Signals of their own: SIGUSR1 makes the event loop stand still for `LOOP_HANG_S`, and SIGUSR2
likewise without letting any Python run.
"""

from __future__ import annotations

import ctypes
import itertools
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxruntime as ort

LOOP_HANG_S = 3.0
LOOK_S = 0.02

OUT_OF_MEMORY = (
    "[ONNXRuntimeError] : 1 : FAIL : Non-zero status code returned while running Gather node. "
    "Status Message: bfc_arena.cc:360 void* onnxruntime::BFCArena::AllocateRawInternal"
    "(size_t, bool, onnxruntime::Stream*) Failed to allocate memory for requested buffer of size "
)
"""As onnxruntime 1.32 says it where the address space is limited (setrlimit)."""


class Faults:
    """Reads from a file what is to go wrong."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._one = threading.Lock()  # held by the one run that hangs

    def now(self) -> tuple[str, float]:
        """The fault and its number; an empty name where all is well."""
        try:
            name, _, number = self._file.read_text(encoding="ascii").strip().partition(" ")
        except OSError:
            return "", 0.0
        return name, float(number or 0)

    def before_run(self, padded_tokens: int) -> None:
        """Go wrong as the file says."""
        name, number = self.now()
        if name == "fail":
            raise RuntimeError("a fault on purpose")
        if name == "memory" and padded_tokens > number:
            raise RuntimeError(f"{OUT_OF_MEMORY}{padded_tokens}")
        if name == "slow":
            time.sleep(number)
        if name == "die":
            self._file.unlink(missing_ok=True)
            ctypes.CDLL(None).pthread_exit(None)
        if name == "hang":
            self._hang(name)
        if name == "hang-first" and self._one.acquire(blocking=False):
            try:
                self._hang(name)
            finally:
                self._one.release()

    def _hang(self, name: str) -> None:
        while self.now()[0] == name:
            time.sleep(LOOK_S)


def install(faults: Faults) -> None:
    """Put the faults where the service meets the machine."""
    sound_run, sound_time = ort.InferenceSession.run, time.time
    jumps = itertools.cycle((1, -1))

    def run(session: Any, names: Any, feed: Any, *more: Any) -> Any:  # noqa: ANN401  # as theirs
        n_pairs, longest = feed["input_ids"].shape
        faults.before_run(n_pairs * longest)
        return sound_run(session, names, feed, *more)

    def wall_s() -> float:
        name, number = faults.now()
        return sound_time() + (next(jumps) * number if name == "clock" else 0.0)

    ort.InferenceSession.run = run
    time.time = wall_s
    signal.signal(signal.SIGUSR1, _blocking(ctypes.CDLL(None).usleep))
    signal.signal(signal.SIGUSR2, _blocking(ctypes.PyDLL(None).usleep))  # keeps the lock


def _blocking(usleep: Callable[[int], object]) -> Callable[..., None]:
    """A handler: it runs in the main thread, which is the event loop's."""
    return lambda *_: (usleep(int(LOOP_HANG_S * 1e6)), None)[1]


def main() -> int:
    """Serve as `python -m service` does, with the faults at hand.

    Returns:
        The service's exit code.
    """
    option, file, *rest = sys.argv[1:]
    if option != "--fault-file":
        sys.exit("the first option must be --fault-file FILE")
    sys.argv[1:] = rest
    install(Faults(Path(file)))
    from service.__main__ import main as serve  # noqa: PLC0415  # takes the patched clock along

    return serve()


if __name__ == "__main__":
    sys.exit(main())
