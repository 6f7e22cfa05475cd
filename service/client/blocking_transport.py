"""Blocking HTTP/1.1 under a deadline.

httpx bounds each wait on a socket, not their sum: connecting, sending and every piece of an answer
may each take the whole timeout. Here every wait gets what is left of the call at that moment.
"""

from __future__ import annotations

import contextlib
import contextvars
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpcore
import httpx

from service.client.arguments import whole_number
from service.client.connections import (
    KEEP_ALIVE_S,
    MAX_CONNECTIONS,
    KeptConnections,
    as_httpx_errors,
    to_httpcore,
)
from service.client.deadline import Deadline
from service.client.forks import renew_in_children

PIECE_BYTES = 16_384  # a body is sent in such pieces, each with what is left then

_deadline: contextvars.ContextVar[Deadline | None] = contextvars.ContextVar(
    "deadline", default=None
)


@contextlib.contextmanager
def until(deadline: Deadline) -> Iterator[None]:
    """All waits of this thread's `DeadlineTransport`s end by the deadline."""
    token = _deadline.set(deadline)
    try:
        yield
    finally:
        _deadline.reset(token)


def _left_s(timeout: float | None, over: type[Exception]) -> float | None:
    deadline = _deadline.get()
    if deadline is None:
        return timeout
    left_s = deadline.left_s()
    if left_s <= 0:
        raise over("the deadline has passed")
    return left_s


class _Stream(httpcore.NetworkStream):
    """A connection whose every wait ends by the deadline of who uses it then."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE_BYTES):
            piece = buffer[start : start + PIECE_BYTES]
            self._stream.write(piece, _left_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left_s = _left_s(timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left_s))

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore has it
        return self._stream.get_extra_info(info)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections within what is left, over all of a host's addresses."""

    def __init__(self, backend: httpcore.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the first address that takes one."""
        refused: httpcore.ConnectError | None = None
        for address in _addresses(host, port):
            left_s = _left_s(timeout, httpcore.ConnectTimeout)
            try:
                return _Stream(
                    self._backend.connect_tcp(address, port, left_s, local_address, socket_options)
                )
            except httpcore.ConnectError as error:
                refused = error
        raise refused or httpcore.ConnectError(f"{host} has no address")


def _addresses(host: str, port: int) -> list[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise httpcore.ConnectError(f"{host}: {error}") from error
    return [str(address[0]) for *_, address in found]


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
        turns, kept = self._turns, self._kept
        with as_httpx_errors(request):
            pool_s = request.extensions.get("timeout", {}).get("pool")
            if not turns.acquire(timeout=_left_s(pool_s, httpcore.PoolTimeout)):
                raise httpx.PoolTimeout("every connection is in use", request=request)
            try:
                asked = to_httpcore(request)
                connection = self._connection(kept, asked.url.origin)
                answer = connection.handle_request(asked)
            except BaseException:
                turns.release()
                raise

        def done() -> None:
            if not kept.keep(asked.url.origin, connection):
                connection.close()
            turns.release()

        body = _Body(answer.stream, request, done)
        return httpx.Response(answer.status, headers=answer.headers, stream=body)

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
