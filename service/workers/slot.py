"""The place of one worker: keeps a process in it until the service stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from service.domain import RestartReason
from service.workers.restart_policy import RestartPolicy
from service.workers.worker_process import WorkerProcess

logger = logging.getLogger(__name__)


class CrashLoop(Exception):
    """A worker would not stay up."""


class StartFailed(Exception):
    """The first worker never served: the others would fare no better."""

    def __init__(self, exit_code: int) -> None:
        self.exit_code = exit_code


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a worker is waited for.

    Attributes:
        start_s: From its start to its first sign of life, the loading of its model included.
        sign_s: From one sign of life to the next.
        stop_s: From being asked to stop to its end.
        look_s: Between two looks.
    """

    start_s: float
    sign_s: float
    stop_s: float
    look_s: float = 0.1


class Slot:
    """One of the workers, in this and all its later lives.

    Attributes:
        number: From 1.
        worker: The process that is there now; None between two.
    """

    def __init__(
        self,
        number: int,
        start: Callable[[], Awaitable[WorkerProcess]],
        patience: Patience,
        policy: RestartPolicy,
        on_end: Callable[[WorkerProcess, RestartReason | None], None],
        others_serve: Callable[[], bool] = lambda: False,
    ) -> None:
        """Set up; nothing is started before `keep_up`.

        Args:
            number: From 1.
            start: Starts a process.
            patience: With it.
            policy: When to start another one.
            on_end: Told of each process that has ended, and why, unless it was the service's stop.
            others_serve: Whether another worker does: then this one is tried for ever.
        """
        self.number = number
        self.worker: WorkerProcess | None = None
        self._start = start
        self._patience = patience
        self._policy = policy
        self._on_end = on_end
        self._others_serve = others_serve

    async def keep_up(self, stopping: asyncio.Event, *, first: bool = False) -> None:
        """Run one process after the other until `stopping` is set and the last one has ended.

        Args:
            stopping: Then the process is asked to stop, and killed when it takes too long.
            first: No process is tried twice before one has served.

        Raises:
            StartFailed: The first process never served.
            CrashLoop: Process after process ended without serving for long, and no other worker
                serves.
        """
        failures = 0
        while not stopping.is_set():
            try:
                self.worker = worker = await self._start()
            except OSError as error:  # no more processes, or no memory for one
                failures += 1
                await self._pause(failures, f"{error}", stopping)
                continue
            hung = await self._watch(worker, stopping)
            self.worker = None
            reason = self._reason(worker, stopping, hung=hung)
            self._on_end(worker, reason)
            if reason is None:
                return
            if first and not worker.served.is_set():
                raise StartFailed(worker.ended.result())  # it said why
            how = _how(worker.ended.result())
            logger.error(
                "a worker has ended",
                extra={"worker": self.number, "reason": reason.value, "how": how},
            )
            first = False
            if reason is not RestartReason.RELOAD:
                failures = self._policy.failures(failures, worker.served_s)
            await self._pause(failures, how, stopping)

    async def _pause(self, failures: int, how: str, stopping: asyncio.Event) -> None:
        """Wait before the next start, unless it has become pointless."""
        delay_s = self._policy.delay_s(failures)
        if delay_s is None and self._others_serve():
            delay_s = self._policy.max_delay_s
        if delay_s is None:
            raise CrashLoop(
                f"worker {self.number} ended {failures} times in a row without serving for "
                f"{self._policy.steady_s:g} s, the last time by {how}"
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stopping.wait(), delay_s)

    async def _watch(self, worker: WorkerProcess, stopping: asyncio.Event) -> bool:
        """Wait for the end of the process.

        Returns:
            Whether it was killed for giving no sign.
        """
        look_s = self._patience.look_s
        hung, stopped_s = False, 0.0
        while not worker.ended.done():
            await asyncio.wait({worker.ended}, timeout=look_s)
            # Counted in looks, not read from a clock: time in which we stood still ourselves, and
            # could hear nothing, is not the worker's.
            worker.silent_s += look_s
            if stopping.is_set() or worker.replaced or worker.unfit:
                if stopped_s == 0.0:
                    worker.stop()
                stopped_s += look_s
                if stopped_s > self._patience.stop_s:
                    worker.kill()
            elif worker.silent_s > self._silence_s(worker):
                hung = True
                worker.kill()
        return hung

    def _reason(
        self, worker: WorkerProcess, stopping: asyncio.Event, *, hung: bool
    ) -> RestartReason | None:
        if stopping.is_set():
            return None
        if hung or worker.unfit:
            return RestartReason.HUNG
        return RestartReason.RELOAD if worker.replaced else RestartReason.DIED

    def _silence_s(self, worker: WorkerProcess) -> float:
        return self._patience.sign_s if worker.served.is_set() else self._patience.start_s


def _how(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {exit_code}"
    with contextlib.suppress(ValueError):
        return signal.Signals(-exit_code).name
    return f"signal {-exit_code}"
