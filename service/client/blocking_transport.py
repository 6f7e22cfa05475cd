"""HTTP/1.1 for threads, over kept connections and under a deadline."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpcore
import httpx

from service.client.arguments import whole_number
from service.client.connections import (
    KEEP_ALIVE_S,
    MAX_CONNECTIONS,
    KeptConnections,
    as_httpx_errors,
    asking,
    to_httpcore,
)
from service.client.deadline_network import DeadlineBackend, wait_s
from service.client.forks import renew_in_children


class DeadlineTransport(httpx.BaseTransport):
    """HTTP/1.1 over kept connections, whose waits end by the deadline that `until` has set.

    Any number of threads may share it. A forked process opens connections of its own.
    """

    def __init__(
        self,
        ssl_context: ssl.SSLContext | None = None,
        max_connections: int = MAX_CONNECTIONS,
        backend: httpcore.NetworkBackend | None = None,
    ) -> None:
        """Open no connection yet.

        Args:
            ssl_context: For https; httpx's certificates where absent.
            max_connections: In use at once; a call beyond them waits for one, until its deadline.
            backend: Opens sockets; the system's where absent.

        Raises:
            TypeError: `max_connections` is no whole number.
            ValueError: `max_connections` is below 1.
        """
        self._ssl_context = ssl_context
        self._max_connections = whole_number("max_connections", max_connections, 1)
        self._backend = DeadlineBackend(backend or httpcore.SyncBackend())
        self._begin()
        renew_in_children(self)

    def _begin(self) -> None:
        self._turns = threading.Semaphore(self._max_connections)
        self._kept = KeptConnections[httpcore.HTTPConnection]()

    def renew(self) -> None:
        """Leave the parent's connections to the parent, in a child process."""
        parents = self._kept.end()
        self._begin()
        for connection in parents:
            connection.close()  # the child's descriptor; the connection stays open

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send, and return when the head of the answer is there."""
        turns, kept, asked = self._turns, self._kept, to_httpcore(request)
        with as_httpx_errors(request):
            pool_s = request.extensions.get("timeout", {}).get("pool")
            if not turns.acquire(timeout=wait_s(pool_s, httpcore.PoolTimeout)):
                raise httpx.PoolTimeout("every connection is in use", request=request)
            connection: httpcore.HTTPConnection | None = None

            def done() -> None:
                if connection is not None and not kept.keep(asked.url.origin, connection):
                    connection.close()
                turns.release()

            try:
                connection = self._connection(kept, asked.url.origin)
                with asking(request, connection):
                    answer = connection.handle_request(asked)
            except BaseException:
                done()
                raise
        body = _Body(answer.stream, request, done)
        return httpx.Response(
            answer.status, headers=answer.headers, stream=body, extensions=answer.extensions
        )

    def _connection(
        self, kept: KeptConnections[httpcore.HTTPConnection], origin: httpcore.Origin
    ) -> httpcore.HTTPConnection:
        connection, useless = kept.take(origin)
        for one in useless:
            one.close()
        if connection is not None:
            return connection
        if self._ssl_context is None and origin.scheme == b"https":
            self._ssl_context = httpcore.default_ssl_context()
        return httpcore.HTTPConnection(
            origin,
            ssl_context=self._ssl_context,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=self._backend,
        )

    def close(self) -> None:
        """Close the connections; one that is in use follows when its call has ended."""
        for connection in self._kept.end():
            connection.close()


class _Body(httpx.SyncByteStream):
    def __init__(
        self,
        stream: Any,  # noqa: ANN401  # httpcore's
        request: httpx.Request,
        done: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._request = request
        self._done: Callable[[], None] | None = done

    def __iter__(self) -> Iterator[bytes]:
        with as_httpx_errors(self._request):
            yield from self._stream

    def close(self) -> None:
        done, self._done = self._done, None
        if done is not None:
            try:
                self._stream.close()
            finally:
                done()
