"""HTTP/1.1 for asyncio over kept connections."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpcore
import httpx

from service.client.connections import (
    KEEP_ALIVE_S,
    KeptConnections,
    as_httpx_errors,
    asking,
    to_httpcore,
)


class KeepAliveTransport(httpx.AsyncBaseTransport):
    """HTTP/1.1 over kept connections; who calls bounds the time and how many are open.

    A request that is cancelled closes its connection.
    """

    def __init__(
        self,
        ssl_context: ssl.SSLContext | None = None,
        backend: httpcore.AsyncNetworkBackend | None = None,
    ) -> None:
        """Open no connection yet.

        Args:
            ssl_context: For https; httpx's certificates where absent.
            backend: Opens sockets; the system's where absent.
        """
        self._ssl_context = ssl_context
        self._backend = backend
        self._kept = KeptConnections[httpcore.AsyncHTTPConnection]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and return when the head of the answer is there."""
        asked = to_httpcore(request)
        origin = asked.url.origin
        connection = await self._connection(origin)

        async def done() -> None:
            if not self._kept.keep(origin, connection):
                await connection.aclose()

        try:
            with asking(request, connection):
                answer = await connection.handle_async_request(asked)
        except BaseException:  # also cancelled before it was sent: the connection is still good
            await done()
            raise
        body = _Body(answer.stream, request, done)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=body, extensions=answer.extensions
        )

    async def _connection(self, origin: httpcore.Origin) -> httpcore.AsyncHTTPConnection:
        connection, useless = self._kept.take(origin)
        try:
            for one in useless:
                await one.aclose()
        except BaseException:
            if connection is not None:
                self._kept.keep(origin, connection)
            raise
        if connection is not None:
            return connection
        if self._ssl_context is None and origin.scheme == b"https":
            self._ssl_context = httpcore.default_ssl_context()
        return httpcore.AsyncHTTPConnection(
            origin,
            ssl_context=self._ssl_context,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=self._backend,
        )

    async def aclose(self) -> None:
        """Close the connections; one that is in use follows when its call has ended."""
        for connection in self._kept.end():
            await connection.aclose()


class _Body(httpx.AsyncByteStream):
    def __init__(
        self,
        stream: Any,  # noqa: ANN401  # httpcore's
        request: httpx.Request,
        done: Callable[[], Awaitable[None]],
    ) -> None:
        self._stream = stream
        self._request = request
        self._done: Callable[[], Awaitable[None]] | None = done

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with as_httpx_errors(self._request):
            async for piece in self._stream:
                yield piece

    async def aclose(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            try:
                await self._stream.aclose()
            finally:
                await done()
