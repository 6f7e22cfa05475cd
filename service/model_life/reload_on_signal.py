"""Reloads for who cannot hear an answer: a signal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from service.errors import ServiceError

logger = logging.getLogger(__name__)


class ReloadOnSignal:
    """Reloads once for all signals that came before it began, one reload after the other.

    A signal that comes during a reload is not lost: that one may have read the folder before it
    was changed.
    """

    def __init__(self, reload_in_turn: Callable[[], Awaitable[object]]) -> None:
        self._reload_in_turn = reload_in_turn
        self._asked = asyncio.Event()

    def ask(self) -> None:
        """The signal has come; called on the event loop."""
        self._asked.set()

    async def run(self) -> None:
        """Reload whenever asked, until cancelled."""
        while True:
            await self._asked.wait()
            self._asked.clear()
            try:
                await self._reload_in_turn()
            except ServiceError:
                pass  # logged and counted where it was raised
            except Exception:  # the next signal must be heard all the same
                logger.exception("a reload failed; the model of before serves on")
