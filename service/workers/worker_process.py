"""The supervisor's hold on one worker process: start it, hear it, end it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Self

from service.workers.link import Handler, Link
from service.workers.spec import WorkerSpec

logger = logging.getLogger(__name__)

COMMAND = (
    sys.executable,
    "-u",  # a line of the log is one write, which those of others cannot tear
    "-m",
    "service.workers",
)


class WorkerProcess:
    """One process, from its start to its end.

    Attributes:
        link: To it.
        served: Set when it listens.
        ended: Done when the process is gone; its exit code, negative for a signal.
        silent_s: How long nothing was heard of it; written by who watches it.
        replaced: Its end was asked for, since it cannot serve what the others do.
        unfit: It says of itself that only a new process helps.
    """

    def __init__(
        self,
        number: int,
        process: asyncio.subprocess.Process,
        link: Link,
        now_s: Callable[[], float],
    ) -> None:
        self._number = number
        self._process = process
        self._now_s = now_s
        self.link = link
        self.served = asyncio.Event()
        self.ended = asyncio.create_task(self._process.wait())
        self.silent_s = 0.0
        self.replaced = False
        self.unfit = False
        self._served_since_s: float | None = None
        self._reading = asyncio.create_task(link.run())

    @classmethod
    async def start(
        cls,
        describe: Callable[[int], WorkerSpec],
        settings_argv: Sequence[str],
        handlers: Mapping[str, Handler],
        now_s: Callable[[], float],
    ) -> Self:
        """Start a worker; it is loading when this returns.

        Args:
            describe: Given the descriptor of its end of the link.
            settings_argv: The command line's; it reads them, and the environment, by itself.
            handlers: Of its questions.
            now_s: Monotonic seconds.
        """
        ours, its = socket.socketpair()
        with its:
            spec = describe(its.fileno())
            try:
                process = await _spawned(spec, settings_argv)
            except BaseException:
                ours.close()
                raise
        heard: dict[str, Handler] = {}
        link = await Link.over(ours, heard)
        worker = cls(spec.number, process, link, now_s)
        heard |= {**handlers, "alive": worker._alive, "listening": worker._listening}
        heard["unfit"] = worker._unfit
        return worker

    @property
    def served_s(self) -> float:
        """How long it has served; 0 for one that does not yet."""
        return 0.0 if self._served_since_s is None else self._now_s() - self._served_since_s

    def stop(self) -> None:
        """Ask it to finish what it has accepted and end."""
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._send(signal.SIGKILL)

    def _send(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(number)

    async def _alive(self, _: object) -> None:
        self.silent_s = 0.0

    async def _unfit(self, why: object) -> None:
        logger.error("a worker asks to be replaced", extra={"worker": self._number, "why": why})
        self.unfit = True

    async def _listening(self, _: object) -> None:
        logger.info("a worker serves", extra={"worker": self._number, "pid": self._process.pid})
        self._served_since_s = self._now_s()
        self.served.set()


async def _spawned(spec: WorkerSpec, settings_argv: Sequence[str]) -> asyncio.subprocess.Process:
    inherited = spec.inherited
    descriptors = (inherited.link, inherited.counts, inherited.listener, inherited.admin_listener)
    return await asyncio.create_subprocess_exec(
        *COMMAND,
        spec.to_json(),
        *settings_argv,
        stdin=asyncio.subprocess.DEVNULL,
        pass_fds=[one for one in descriptors if one is not None],
        process_group=0,  # Ctrl-C is the supervisor's; it tells the workers
    )
