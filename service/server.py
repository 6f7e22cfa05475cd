"""The HTTP server's start and stop, where they must be in step with the service's own."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import FrameType

import uvicorn

from service.listening import start_listening, url_of

logger = logging.getLogger(__name__)

_of_admin_server: ContextVar[bool] = ContextVar("of_admin_server", default=False)


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Not what uvicorn says of a process, where the main server says it too."""
    return record.levelno > logging.INFO or not _of_admin_server.get()


class AdminServer(uvicorn.Server):
    """The operators' server: a guest in the main one's event loop, which starts and stops it."""

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until `should_exit`, in a task of its own, and log no more than warnings."""
        _of_admin_server.set(True)
        logging.getLogger("uvicorn.error").addFilter(_is_worth_a_line)
        await super().serve(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the main server."""
        yield


class Server(uvicorn.Server):
    """Says where it listens, and drains the service while it lets its connections end.

    By itself uvicorn would only tell the application of the stop when all requests have ended or
    were cut off, which is too late to refuse new ones or to answer those that cannot be finished.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        drain: Callable[[], Awaitable[None]],
        on_hangup: Callable[[], None],
        admin: tuple[AdminServer, socket.socket] | None = None,
        *,
        on_stop_signal: Callable[[], None] = lambda: None,
        shutdown_delay_s: float = 0.0,
    ) -> None:
        """Serve nothing yet.

        Args:
            config: Of the server that scores.
            drain: Begins when the stop signal comes.
            on_hangup: Called on the event loop at every SIGHUP.
            admin: The operators' server and its socket. It is up before this one and after it, so
                that they can see it start, drain and stop.
            on_stop_signal: Called in the handler of the first one, even when the loop is stuck.
            shutdown_delay_s: From the stop signal to the drain; all is served meanwhile.
        """
        super().__init__(config)
        self._drain = drain
        self._on_hangup = on_hangup
        self._admin = admin
        self._admin_serves: asyncio.Task[None] | None = None
        self._on_stop_signal = on_stop_signal
        self._shutdown_delay_s = shutdown_delay_s
        self._stopped_by: str | None = None

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop in order at the first signal, at once at the second."""
        if self.should_exit:
            # Not by the log, whose locks the interrupted code may hold.
            os.write(2, b'{"level": "warning", "message": "a second signal: ended at once"}\n')
            os._exit(128 + sig)  # as a shell tells of a process that a signal has ended
        self._stopped_by = signal.Signals(sig).name
        self._on_stop_signal()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, start the application, then accept.

        Raises:
            CannotListen: Somebody else listens on an address by now; nothing was started.
        """
        admin_sockets = [self._admin[1]] if self._admin is not None else []
        for bound in [*admin_sockets, *(sockets or ())]:
            start_listening(bound)
        if self._admin is not None:
            admin, bound = self._admin
            self._admin_serves = asyncio.create_task(admin.serve(sockets=[bound]))
            logger.info("listening for operators", extra={"url": url_of(bound)})
        await super().startup(sockets)
        if hasattr(signal, "SIGHUP"):
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._on_hangup)
        for bound in sockets or ():
            logger.info("listening", extra={"url": url_of(bound)})

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for traffic to go, stop listening, drain, let the answers leave, end the rest."""
        facts = {"signal": self._stopped_by, "shutdown_delay_s": self._shutdown_delay_s}
        logger.info("stopping", extra=facts)
        # Callers that keep their connections would come back on them: let each answer end its own.
        self.server_state.default_headers += [(b"connection", b"close")]
        await asyncio.sleep(self._shutdown_delay_s)
        drain = asyncio.ensure_future(self._drain())
        await super().shutdown(sockets)
        await drain
        if self._admin is not None and self._admin_serves is not None:
            self._admin[0].should_exit = True
            await self._admin_serves
