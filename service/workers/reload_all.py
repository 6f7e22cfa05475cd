"""Another model in every worker: one after the other, so that the others serve meanwhile.

The first that serves is the canary: what it refuses no other is asked to load. A later one that
cannot load what the canary could is replaced by a fresh process, which loads it at its start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from service.domain import ReloadResult
from service.errors import BundleRefused, ReloadRunning, ServiceError
from service.startup_errors import StartupError
from service.workers.link import AskFailed, LinkLost
from service.workers.shared_folder import PinnedBundle
from service.workers.slot import Slot
from service.workers.worker_process import WorkerProcess

logger = logging.getLogger(__name__)

REPLACED = "replaced"


class ReloadAll:
    """Reloads all workers; one reload at a time."""

    def __init__(
        self, slots: Sequence[Slot], pinned: PinnedBundle, on_failed: Callable[[], None]
    ) -> None:
        """Reload nothing yet.

        Args:
            slots: Of the workers.
            pinned: What they serve.
            on_failed: Called for a failure that no worker can have counted itself.
        """
        self._slots = slots
        self._on_failed = on_failed
        self._pinned = pinned
        self._reloading = asyncio.Lock()

    async def reload(self) -> list[dict[str, Any]]:
        """Serve what the bundle's folder holds now, in every worker.

        Returns:
            For each worker that served its number and how it ended for it: as a reload's report has
            it, or `replaced`.

        Raises:
            ReloadRunning: Another reload is under way.
            BundleRefused: The folder's content cannot be served; the old model serves on.
            ServiceError: No worker could say.
        """
        if self._reloading.locked():
            raise ReloadRunning
        return await self.reload_in_turn()

    async def reload_in_turn(self) -> list[dict[str, Any]]:
        """As `reload`, but after one that is under way.

        Raises:
            BundleRefused: As in `reload`.
            ServiceError: Likewise.
        """
        async with self._reloading:
            try:
                return await self._reload()
            except BundleRefused:
                raise  # has been logged and counted
            except Exception as error:
                logger.error("the bundle was not reloaded", extra={"why": str(error)})
                self._on_failed()
                raise

    async def _reload(self) -> list[dict[str, Any]]:
        slots = [slot for slot in self._slots if slot.worker is not None]
        slots.sort(key=lambda slot: not _serves(slot.worker))  # who starts may never serve
        if not slots:
            raise ServiceError("no worker serves that could reload")
        first = await self._try(slots[0])
        outcomes = [first]
        for slot in slots[1:]:
            outcome = await self._follow(slot, first["version"])
            if outcome is not None:
                outcomes.append(outcome)
        self._pinned.tidy()
        return outcomes

    async def _try(self, canary: Slot) -> dict[str, Any]:
        """What the canary tells; where it fails, all stays pinned as it was."""
        try:
            before = self._pinned.advance()
        except StartupError as error:
            logger.error("the bundle was not reloaded", extra={"why": str(error)})
            self._on_failed()
            raise BundleRefused(error) from error
        except OSError as error:
            raise ServiceError(f"the bundle could not be pinned: {error}") from error
        try:
            return await self._load(canary)
        except BaseException:
            self._pinned.go_back(before)
            raise

    async def _load(self, slot: Slot) -> dict[str, Any]:
        """What the worker tells of its reload."""
        worker = await _served(slot)
        if worker is None:
            raise ServiceError("no worker serves that could reload")
        try:
            told: dict[str, Any] = await worker.link.ask("reload")
        except LinkLost as error:
            raise ServiceError(f"worker {slot.number} ended while it loaded the bundle") from error
        except AskFailed as error:
            raise ServiceError("the reload failed; see the service's log") from error
        if "refused" in told:
            raise refusal(told["refused"])
        return {"worker": slot.number, **told}

    async def _follow(self, slot: Slot, version: str) -> dict[str, Any] | None:
        """Let a worker serve what the canary does, by a fresh process if need be."""
        worker = await _served(slot)
        if worker is None:  # it is between two lives; the next one begins with the new bundle
            return None
        try:
            outcome = await self._load(slot)
            if outcome["version"] == version:
                return outcome
            why = f"it loaded version {outcome['version']}"
        except ServiceError as error:
            why = str(error)
        logger.error(
            "a worker is replaced, since it did not load what the others serve",
            extra={"worker": slot.number, "why": why},
        )
        worker.replaced = True
        await worker.ended
        return {"worker": slot.number, "result": REPLACED, "version": version}


def overall(outcomes: Sequence[dict[str, Any]]) -> ReloadResult:
    """In a word: one that changed is a change."""
    unchanged = all(outcome["result"] == ReloadResult.UNCHANGED for outcome in outcomes)
    return ReloadResult.UNCHANGED if unchanged else ReloadResult.CHANGED


def refusal(why: str) -> BundleRefused:
    """As the process raised it that told why."""
    refused = BundleRefused(cause := Exception(why))
    refused.__cause__ = cause
    return refused


async def _served(slot: Slot) -> WorkerProcess | None:
    """The worker once it serves; None where it ends before."""
    worker = slot.worker
    if worker is None:
        return None
    serving = asyncio.create_task(worker.served.wait())
    try:
        await asyncio.wait({serving, worker.ended}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        serving.cancel()
    return worker if _serves(worker) else None


def _serves(worker: WorkerProcess | None) -> bool:
    return worker is not None and worker.served.is_set() and not worker.ended.done()
