"""Sockets whose waits end by a deadline.

httpx bounds each wait on a socket, not their sum: connecting, sending and every piece of an answer
may each take the whole timeout. Here every wait gets what is left of the call at that moment.
"""

from __future__ import annotations

import contextlib
import contextvars
import socket
import ssl
from collections.abc import Iterable, Iterator
from typing import Any

import httpcore

from service.client.deadline import Deadline

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


def wait_s(timeout: float | None, over: type[Exception]) -> float | None:
    """How long a wait may take now: what is left, or `timeout` where no deadline is set.

    Raises:
        Exception: `over`, when the deadline has passed.
    """
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
        return self._stream.read(max_bytes, wait_s(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), PIECE_BYTES):
            piece = buffer[start : start + PIECE_BYTES]
            self._stream.write(piece, wait_s(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        left_s = wait_s(timeout, httpcore.ConnectTimeout)
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
            left_s = wait_s(timeout, httpcore.ConnectTimeout)
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
