"""The HTTP server of a worker: it shares its socket, and ends when the supervisor does."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType
from typing import cast

from service.listening import start_listening, url_of
from service.serve import Assembled
from service.server import Server
from service.workers.membership import Membership
from service.workers.turns import TurnTakingListener

logger = logging.getLogger(__name__)


class WorkerServer(Server):
    """Joins the others before its application starts, and leaves them when it has stopped."""

    def __init__(
        self,
        assembled: Assembled,
        membership: Membership,
        listener: socket.socket,
        others_first: Callable[[int], bool],
    ) -> None:
        """Serve nothing yet.

        Args:
            assembled: What it serves.
            membership: Among the workers.
            listener: That all of them accept from.
            others_first: As `TurnTakingListener` asks it.
        """
        state = assembled.state
        super().__init__(
            assembled.config,
            lambda: state.drain(),  # noqa: PLW0108  # the application sets it when it has started
            lambda: None,  # a hang-up is the supervisor's
            assembled.admin,
            on_stop_signal=lambda: state.stop_is_asked(assembled.stop_limit_s),
        )
        self._membership = membership
        self._shared = listener
        self._others_first = others_first
        self._listener: TurnTakingListener | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """As a single process, but for an interrupt, which a terminal sends to all of its group.

        The supervisor has it too, and says when to stop: as a second signal, it would end at once.
        """
        if sig != signal.SIGINT:
            super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, start the application, then accept in turns.

        Raises:
            CannotListen: Another service listens on the address by now.
        """
        start_listening(self._shared)
        await self._membership.join(self._end)
        await super().startup(sockets)
        self._listener = TurnTakingListener(self._shared, self._others_first, self._protocol)
        self._listener.start()
        logger.info("listening", extra={"url": url_of(self._shared)})
        self._membership.listens()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Leave new connections to others, then stop as a single process does."""
        if self._listener is not None:
            await self._listener.close()
        await super().shutdown(sockets)
        await self._membership.leave()

    def _end(self) -> None:
        self.should_exit = True

    def _protocol(self) -> asyncio.Protocol:
        """As uvicorn makes it for the sockets that it listens on itself."""
        make = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return make(
            config=self.config,
            server_state=self.server_state,
            app_state=self.lifespan.state,
        )
