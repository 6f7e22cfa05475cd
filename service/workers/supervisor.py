"""The process above the workers: starts them, keeps them up, and speaks for all of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.process_collector import ProcessCollector

from service.domain import ReloadResult, RestartReason
from service.errors import BundleRefused, ReloadRunning
from service.listening import bind
from service.metrics.reload_metrics import ReloadMetrics
from service.metrics.worker_metrics import WorkerMetrics
from service.model_life.reload_on_signal import ReloadOnSignal
from service.settings import Settings
from service.settings_given import log_differing
from service.startup_errors import InvalidSetting
from service.workers.core_sets import CoreShare, core_shares
from service.workers.folder_life import own_folder
from service.workers.link import Handler
from service.workers.metrics_hub import MetricsHub
from service.workers.reload_all import ReloadAll
from service.workers.restart_policy import RestartPolicy
from service.workers.shared_folder import PinnedBundle
from service.workers.slot import CrashLoop, Patience, Slot, StartFailed
from service.workers.spec import Inherited, WorkerSpec
from service.workers.turns import ABSENT, ConnectionCounts, shared_counts
from service.workers.worker_process import WorkerProcess

logger = logging.getLogger(__name__)

CRASH_LOOP_EXIT_CODE = 3

START_S = 300.0  # a large model on a slow disk, hashed twice
LAST_ANSWERS_S = 10.0  # beyond the drain: the last batch and the interpreter's own end


def supervise(settings: Settings, settings_argv: Sequence[str]) -> int:
    """Serve by several workers until a stop signal.

    Args:
        settings: Effective settings, with more than one worker.
        settings_argv: The command line's, which every worker reads by itself.

    Returns:
        Exit code: 0 after a stop, 3 when workers would not stay up, the first worker's own where it
        could not start.

    Raises:
        StartupError: It cannot be served so here; the message says why.
    """
    if not hasattr(os, "memfd_create"):
        raise InvalidSetting(f"workers: is {settings.workers}; more than 1 needs Linux")
    shares = core_shares(settings.workers)
    listener = bind(settings.host, settings.port)
    admin_listener = None
    if settings.admin_port is not None:
        admin_listener = bind(settings.admin_host, settings.admin_port)
    with own_folder() as folder:
        supervisor = Supervisor(settings, settings_argv, shares, listener, admin_listener, folder)
        return asyncio.run(supervisor.run())


class StopSignals:
    """The first one asks for a stop in order, the second one for a stop without delay."""

    def __init__(self) -> None:
        self.first, self.second = asyncio.Event(), asyncio.Event()

    def came(self) -> None:
        """Called for each."""
        (self.second if self.first.is_set() else self.first).set()


class Supervisor:
    """Joins the parts; see `run`."""

    def __init__(
        self,
        settings: Settings,
        settings_argv: Sequence[str],
        shares: Sequence[CoreShare],
        listener: socket.socket,
        admin_listener: socket.socket | None,
        folder: Path,
    ) -> None:
        self._settings, self._settings_argv = settings, settings_argv
        self._shares = shares
        self._listener = listener
        self._admin_listener = admin_listener
        self._folder = folder
        self._counts_file = shared_counts(len(shares))
        self._counts = ConnectionCounts(self._counts_file, len(shares))
        self._pinned = PinnedBundle(folder, settings.bundle)
        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._metrics = WorkerMetrics(registry, n_processes=0)
        self._reload_metrics = ReloadMetrics(registry)
        self._hub = MetricsHub(registry)
        self._shutdown_delay_s = settings.shutdown_delay_s
        patience = Patience(
            START_S, settings.worker_timeout_s, settings.drain_timeout_s + LAST_ANSWERS_S
        )
        self._slots = [self._slot(number, patience) for number in range(1, len(shares) + 1)]

    def _slot(self, number: int, patience: Patience) -> Slot:
        async def start() -> WorkerProcess:
            return await self._start(number)

        def on_end(worker: WorkerProcess, reason: RestartReason | None) -> None:
            self._counts.set(number - 1, ABSENT)
            self._hub.left(worker.link)
            if reason is not None:
                self._metrics.restarted(reason)

        def others_serve() -> bool:
            return any(
                slot.worker is not None and slot.worker.served.is_set()
                for slot in self._slots
                if slot.number != number
            )

        return Slot(number, start, patience, RestartPolicy(), on_end, others_serve)

    async def run(self) -> int:
        """Serve until a stop signal, or until it has become pointless.

        Returns:
            The exit code.
        """
        loop, stop = asyncio.get_running_loop(), StopSignals()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.came)
        self._reloads = ReloadAll(
            self._slots, self._pinned, lambda: self._reload_metrics.ended(ReloadResult.FAILED)
        )
        signalled = ReloadOnSignal(self._reloads.reload_in_turn)
        loop.add_signal_handler(signal.SIGHUP, signalled.ask)
        following = asyncio.create_task(signalled.run())
        try:
            return await self._keep_up(stop)
        finally:
            following.cancel()

    async def _keep_up(self, stop: StopSignals) -> int:
        stopping = asyncio.Event()
        first, *others = self._slots
        lives = [asyncio.create_task(first.keep_up(stopping, first=True))]
        # Alone, so that what is wrong with the bundle or the machine is told once.
        await self._first_serves(first, lives[0])
        if not lives[0].done():
            log_differing(self._settings)
            lives += [asyncio.create_task(slot.keep_up(stopping)) for slot in others]
        asked = asyncio.create_task(stop.first.wait())
        await asyncio.wait({asked, *lives}, return_when=asyncio.FIRST_COMPLETED)
        if stop.first.is_set():
            await self._let_traffic_go(stop)
        stopping.set()
        # The last to close it: callers that come now are refused, and do not wait in vain.
        self._listener.close()
        outcomes = await asyncio.gather(*lives, return_exceptions=True)
        return max(_exit_code(outcome) for outcome in outcomes)

    async def _let_traffic_go(self, stop: StopSignals) -> None:
        """Not ready from now on, and for a while everything is served all the same."""
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.link.tell("stopping")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.second.wait(), self._shutdown_delay_s)

    async def _first_serves(self, slot: Slot, life: asyncio.Task[None]) -> None:
        while not life.done():
            if slot.worker is not None and slot.worker.served.is_set():
                return
            await asyncio.wait({life}, timeout=0.02)

    async def _start(self, number: int) -> WorkerProcess:
        def describe(link: int) -> WorkerSpec:
            admin = self._admin_listener
            inherited = Inherited(
                link=link,
                counts=self._counts_file,
                listener=self._listener.fileno(),
                admin_listener=admin.fileno() if admin is not None else None,
            )
            share = self._shares[number - 1]
            return WorkerSpec(number, len(self._shares), share, inherited, self._folder)

        handlers: dict[str, Handler] = {"metrics": self._all_series, "reload": self._reload}
        worker = await WorkerProcess.start(describe, self._settings_argv, handlers, time.monotonic)
        self._hub.joined(worker.link)
        return worker

    async def _all_series(self, _: object) -> str:
        workers = {slot.number: slot.worker for slot in self._slots}
        links = {
            number: worker.link
            for number, worker in workers.items()
            if worker is not None and worker.served.is_set()
        }
        return (await self._hub.exposition(links)).decode()

    async def _reload(self, _: object) -> Any:  # noqa: ANN401  # JSON
        try:
            return await self._reloads.reload()
        except ReloadRunning:
            return "running"
        except BundleRefused as error:
            return {"refused": str(error.__cause__)}


def _exit_code(outcome: BaseException | None) -> int:
    """Of a slot that will start no more workers."""
    if outcome is None:
        return 0
    if isinstance(outcome, StartFailed):
        return outcome.exit_code if outcome.exit_code > 0 else 1
    if isinstance(outcome, CrashLoop):
        logger.error("workers do not stay up; the service ends", extra={"why": str(outcome)})
        return CRASH_LOOP_EXIT_CODE
    raise outcome
