"""Reloads for who cannot hear an answer: a signal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from service.errors import ServiceError


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
            with contextlib.suppress(ServiceError):  # it is logged and counted
                await self._reload_in_turn()
