"""A worker's side of its link: signs of life, series and reloads, and the end of the supervisor."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from service.api.state import Reloads, ServiceState
from service.domain import ReloadResult
from service.errors import BundleRefused, NotReady, ReloadRunning, ServiceError
from service.model_life.history import ReloadReport
from service.workers.folder_life import remove_folder
from service.workers.link import AskFailed, Link, LinkLost
from service.workers.reload_all import overall, refusal
from service.workers.series import snapshot, to_json

logger = logging.getLogger(__name__)

SIGN_EVERY_S = 0.25
SERIES_S = 5.0
"""For the supervisor to ask all workers."""


class Membership:
    """Makes this process one of several; see `join`."""

    def __init__(self, state: ServiceState, end: socket.socket, folder: Path) -> None:
        """Set up; nothing is told before `join`.

        Args:
            state: Of this process.
            end: Of the link.
            folder: The supervisor's, removed when it is gone.
        """
        self._state = state
        self._end = end
        self._folder = folder
        self._link: Link | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def join(self, on_orphaned: Callable[[], None]) -> None:
        """Give signs of life from now on.

        Args:
            on_orphaned: Called when the supervisor is gone.
        """
        self._link = await Link.over(
            self._end,
            {"series": self._series, "reload": self._reload_here, "stopping": self._stopping},
        )
        self._tasks = [
            asyncio.create_task(self._read(self._link, on_orphaned)),
            asyncio.create_task(self._live(self._link)),
        ]

    def listens(self) -> None:
        """Requests are taken: speak for all workers, not for this one alone."""
        link, local = self._link, self._state.reloads
        assert link is not None  # noqa: S101  # joined before
        assert local is not None  # noqa: S101  # the application has started
        self._local = local
        self._state.reloads = Reloads(self._reload_all, local.history)
        self._state.all_series = self._all_series
        link.tell("listening")

    async def leave(self) -> None:
        """End the link."""
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks)
        if self._link is not None:
            self._link.close()

    async def _read(self, link: Link, on_orphaned: Callable[[], None]) -> None:
        await link.run()
        logger.error("the supervisor is gone; this worker ends too")
        remove_folder(self._folder)
        on_orphaned()

    async def _live(self, link: Link) -> None:
        while True:
            why = self._state.why_not_live()
            if why is not None:
                link.tell("unfit", why)
                return  # from now on its end is timed, whatever it says
            link.tell("alive")
            await asyncio.sleep(SIGN_EVERY_S)

    async def _stopping(self, _: object) -> None:
        """All workers will be asked to stop: say so to who looks, and serve what comes."""
        self._state.stopping = True

    async def _series(self, _: object) -> list[Any]:
        return to_json(snapshot(self._state.metrics.registry))

    async def _all_series(self) -> bytes:
        assert self._link is not None  # noqa: S101
        try:
            content: str = await self._link.ask("metrics", timeout_s=SERIES_S)
        except (LinkLost, AskFailed, TimeoutError) as error:
            # This worker's own series would look like a restart: sums that go backwards.
            raise NotReady(
                "the supervisor, which adds up the workers' series, is silent"
            ) from error
        return content.encode()

    async def _reload_here(self, _: object) -> dict[str, Any]:
        """For the supervisor: this worker alone."""
        try:
            report = await self._local.reload()
        except BundleRefused as error:
            return {"refused": str(error.__cause__)}
        return {
            "result": report.result,
            "took_ms": round(report.took_s * 1000, 1),
            "version": self._local.history().serving.version,
        }

    async def _reload_all(self) -> ReloadReport:
        """As `Reloads.reload`, but of all workers."""
        assert self._link is not None  # noqa: S101
        began_s = time.monotonic()
        try:
            told = await self._link.ask("reload")
        except (LinkLost, AskFailed) as error:
            raise ServiceError("the reload failed; see the service's log") from error
        if told == "running":
            self._state.metrics.model.reload_ended(ReloadResult.REFUSED)
            raise ReloadRunning
        if "refused" in told:
            raise refusal(told["refused"])
        outcomes = tuple(told)
        return ReloadReport(
            overall(outcomes), time.time(), time.monotonic() - began_s, workers=outcomes
        )
