"""The line between the supervisor and one worker: questions, answers, signs of life.

Either side may ask. A message is JSON after its length, on a pair of sockets that the worker
inherits: nothing of it has a name in the file system, and each side sees at once that the other
has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import socket
import struct
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Self

import orjson

logger = logging.getLogger(__name__)

LENGTH = struct.Struct("!I")

Handler = Callable[[Any], Awaitable[Any]]
"""Gets what the other side sent along, gives the answer; both are JSON."""


class LinkLost(Exception):
    """The other side has ended, or is about to."""


class AskFailed(Exception):
    """The other side could not answer, for the reason given."""


class Link:
    """One end. Read by `run`; all else may be called from anywhere on the event loop."""

    def __init__(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        handlers: Mapping[str, Handler],
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._handlers = handlers
        self._numbers = itertools.count()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._lost = False

    @classmethod
    async def over(cls, end: socket.socket, handlers: Mapping[str, Handler]) -> Self:
        """A link over one end of a pair of sockets.

        Args:
            end: Belongs to the link from now on.
            handlers: Of the other side's questions, by name.
        """
        end.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=end)
        return cls(reader, writer, handlers)

    def tell(self, what: str, about: object = None) -> None:
        """Send what needs no answer; without effect when the other side has ended."""
        self._send({"tell": what, "about": about})

    async def ask(self, what: str, about: object = None, timeout_s: float | None = None) -> Any:  # noqa: ANN401  # any JSON
        """What the other side answers.

        Args:
            what: Name of its handler.
            about: Sent along.
            timeout_s: None where only the end of the other side ends the waiting.

        Raises:
            AskFailed: Its handler failed.
            LinkLost: It has ended.
            TimeoutError: It did not answer in time.
        """
        if self._lost:
            raise LinkLost
        number = next(self._numbers)
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._send({"ask": what, "about": about, "number": number})
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        finally:
            del self._asked[number]

    async def run(self) -> None:
        """Read until the other side has ended; then every question of ours fails."""
        try:
            while True:
                (length,) = LENGTH.unpack(await self._reader.readexactly(LENGTH.size))
                self._received(orjson.loads(await self._reader.readexactly(length)))
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the link."""
        self._lost = True
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(LinkLost())
        with contextlib.suppress(OSError, RuntimeError):  # gone, or its loop is
            self._writer.close()

    def _send(self, message: dict[str, object]) -> None:
        if self._lost or self._writer.is_closing():
            return
        content = orjson.dumps(message)
        self._writer.write(LENGTH.pack(len(content)) + content)

    def _received(self, message: dict[str, Any]) -> None:
        if "number" in message and "ask" not in message:
            answer = self._asked.get(message["number"])
            if answer is None or answer.done():  # too late
                return
            if "failed" in message:
                answer.set_exception(AskFailed(message["failed"]))
            else:
                answer.set_result(message["answer"])
            return
        task = asyncio.create_task(self._handle(message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _handle(self, message: dict[str, Any]) -> None:
        number = message.get("number")
        try:
            handler = self._handlers[message["ask" if number is not None else "tell"]]
            answer = await handler(message["about"])
        except Exception as error:
            logger.exception("a message between supervisor and worker failed")
            if number is not None:
                self._send({"number": number, "failed": str(error) or type(error).__name__})
            return
        if number is not None:
            self._send({"number": number, "answer": answer})
