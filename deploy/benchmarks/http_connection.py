"""One client connection that reads no more of an answer than the status and `Content-Length`.

An answer without `Content-Length` counts as none.
"""

from __future__ import annotations

import asyncio
import re
from typing import cast

Address = tuple[str, int]

CONTENT_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Connection(asyncio.Protocol):
    """Keeps alive; one request under way. Opened when needed, and again after a loss."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer; (0, b"") when there is none."""
        loop = asyncio.get_running_loop()
        if self._transport is None:
            try:
                await loop.create_connection(lambda: self, *self._address)
            except OSError:
                return 0, b""
        if self._transport is None:  # lost before it could be used
            return 0, b""
        self._answer = loop.create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Hang up; whoever waits gets no answer."""
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the loop."""
        # uvloop's transports behave like asyncio's but are not of its class.
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Called by the loop."""
        self._transport = None
        self._end(0, b"")

    def data_received(self, data: bytes) -> None:
        """Called by the loop; an answer may come in any pieces."""
        self._buffer += data
        head_end = self._buffer.find(b"\r\n\r\n")
        if head_end < 0:
            return
        length = CONTENT_LENGTH.search(self._buffer, 0, head_end)
        if length is None:
            self.close()
            self._end(0, b"")
            return
        body_end = head_end + 4 + int(length[1])
        if len(self._buffer) >= body_end:
            self._end(int(self._buffer[9:12]), bytes(self._buffer[head_end + 4 : body_end]))

    def _end(self, status: int, body: bytes) -> None:
        self._buffer.clear()
        if self._answer is not None and not self._answer.done():
            self._answer.set_result((status, body))
