"""One model takes over from another while requests are served.

The new one is made ready beside the old one, in a thread that gives way. Then the event loop lets
requests begin with the new one: one assignment, so no request sees both. Those that have begun are
finished by the model that they began with. Once its last pair has run, nothing refers to the old
model any more, and its memory is free.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

from service.batching.batcher import Batcher
from service.batching.generation import Generation
from service.clock import Clock
from service.domain import ReloadResult
from service.errors import BundleRefused, ReloadRunning, ServiceError
from service.heap import return_free_memory
from service.model_life.history import ModelHistory, ReloadReport, Tenure
from service.model_life.loaded_model import LoadedModel
from service.scoring.bundle import Bundle
from service.scoring.encoding import EncodedPair
from service.startup_errors import StartupError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class ModelLife:
    """Owns the model that serves.

    Attributes:
        history: What is told of it.
    """

    def __init__(
        self,
        first: LoadedModel,
        load: Callable[[LoadedModel], LoadedModel | None],
        serve: Callable[[LoadedModel, float], None],
        batcher: Batcher[EncodedPair],
        clock: Clock,
        *,
        on_reload: Callable[[ReloadResult], None],
        finish_timeout_s: float,
        unix_s: Callable[[], float] = time.time,
    ) -> None:
        """Let the first model serve.

        Args:
            first: The model.
            load: What the folder holds now, or None for what it is given; slow, so it is called
                in a thread of its own.
            serve: Lets requests begin with a model from now on, which is told in Unix time.
            batcher: Runs all models' pairs.
            clock: Monotonic time.
            on_reload: Told how each reload ended.
            finish_timeout_s: How long a reload waits for the old model's last pairs.
            unix_s: Wall time.
        """
        self._load = load
        self._serve = serve
        self._batcher = batcher
        self._clock = clock
        self._on_reload = on_reload
        self._finish_timeout_s = finish_timeout_s
        self._unix_s = unix_s
        self._reloading = asyncio.Lock()
        self._model = first
        since_s = unix_s()
        self.history = ModelHistory(tenure(first.bundle, since_s))
        serve(first, since_s)

    async def reload(self) -> ReloadReport:
        """Serve what the bundle's folder holds now.

        Returns:
            The report: another model serves, or the same one because the folder holds no other.

        Raises:
            ReloadRunning: Another reload is under way.
            BundleRefused: The folder's content cannot be served; the old model serves on.
        """
        if self._reloading.locked():
            self._on_reload(ReloadResult.REFUSED)
            raise ReloadRunning
        return await self.reload_in_turn()

    async def reload_in_turn(self) -> ReloadReport:
        """As `reload`, but after one that is under way: for callers who cannot ask again.

        Raises:
            BundleRefused: As in `reload`.
        """
        async with self._reloading:
            return await self._reload(self._clock.now_s())

    async def _reload(self, started_s: float) -> ReloadReport:
        try:
            loaded = await self._in_thread(self._load, self._model)
        except Exception as error:
            report = self._ended(ReloadResult.FAILED, started_s, str(error))
            if isinstance(error, StartupError):
                logger.error("the bundle was not reloaded", extra={"why": report.why})
                raise BundleRefused(error) from error
            logger.exception("the bundle was not reloaded for a reason of ours")
            raise ServiceError("the reload failed; see the service's log") from error
        if loaded is None:
            logger.info("the bundle is the one that serves already")
            return self._ended(ReloadResult.UNCHANGED, started_s)
        if not await self._batcher.finish(self._take_over(loaded), self._finish_timeout_s):
            logger.warning("the model of before has pairs left; they are finished by it")
        gc.collect()  # ended requests in cycles may still refer to the old model
        await self._in_thread(return_free_memory)
        return self._ended(ReloadResult.CHANGED, started_s)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """What takes long, in a thread of its own."""
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, "model-loading")
        try:
            return await loop.run_in_executor(thread, work, *arguments)
        finally:
            thread.shutdown(wait=False)

    def _take_over(self, loaded: LoadedModel) -> Generation[EncodedPair]:
        """Let requests begin with the new model.

        Returns:
            The old model's side in the batches.
        """
        now_s, old = self._unix_s(), self._model
        self._serve(loaded, now_s)
        self._model = loaded
        serving = tenure(loaded.bundle, now_s)
        previous = replace(self.history.serving, until_s=now_s)
        self.history = ModelHistory(serving, previous, self.history.last_reload)
        logger.info(
            "another model serves",
            extra={"model": serving.name, "version": serving.version, "before": previous.version},
        )
        return old.generation

    def _ended(
        self, result: ReloadResult, started_s: float, why: str | None = None
    ) -> ReloadReport:
        report = ReloadReport(result, self._unix_s(), self._clock.now_s() - started_s, why)
        self.history = replace(self.history, last_reload=report)
        self._on_reload(result)
        return report


def tenure(bundle: Bundle, since_s: float) -> Tenure:
    """What is told of a model.

    Args:
        bundle: It.
        since_s: Unix time since which it scores.
    """
    identity = bundle.manifest.model
    return Tenure(identity.name, identity.version, bundle.path.name, since_s)
