"""The other end of a connection: it says what the test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from tests.fakes import until


class Peer(asyncio.Protocol):
    """Of one connection at a time.

    Attributes:
        received: All that came.
        answer: What it says whenever something comes.
        connected: It has a connection.
    """

    def __init__(self, answer: bytes = b"") -> None:
        self.received = b""
        self.answer = answer
        self.connected = False
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport, self.connected = cast("asyncio.Transport", transport), True

    def data_received(self, data: bytes) -> None:
        self.received += data
        if self.answer:
            self.say(self.answer)

    def connection_lost(self, _: Exception | None) -> None:
        self.connected = False

    def say(self, data: bytes) -> None:
        assert self._transport is not None
        self._transport.write(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """On a Unix socket, until the block ends and the connection with it."""
        loop = asyncio.get_running_loop()
        async with await loop.create_unix_server(lambda: self, str(path)):
            try:
                yield
            finally:
                self.close()
                await until(lambda: not self.connected)
