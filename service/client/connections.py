"""Connections that wait for the next request.

httpcore's pool looks at all of its connections, for each of them, before and after every request;
with dozens that takes longer than the request. Here the one that was used last is on top.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Generic, Protocol, TypeAlias, TypeVar

import h11
import httpcore
import httpx

MAX_CONNECTIONS = 100

# Of one event loop. A call costs it some tenths of a millisecond (bench_client), so with answers
# in tens of milliseconds it is busy before this many are under way.
MAX_IN_FLIGHT = 64

# Shorter than the service keeps idle connections (75 s) and than common load balancers do (60 s),
# so that a request is seldom sent into a connection that is being closed.
KEEP_ALIVE_S = 50

Place: TypeAlias = tuple[bytes, bytes, int]


class Connection(Protocol):
    """What httpcore's connections say about themselves, those of threads and those of asyncio."""

    def is_available(self) -> bool:
        """Whether a request can be sent on it: it is open, and none is under way."""

    def is_idle(self) -> bool:
        """Whether it is open after a request; a new one is not."""

    def has_expired(self) -> bool:
        """Whether it was idle for too long, or the other side has closed it."""


C = TypeVar("C", bound=Connection)


class KeptConnections(Generic[C]):
    """Idle connections by where they lead. Safe to share among threads.

    The only mutable state are the stacks, where the connection that was used last is on top and
    the one that has been idle longest at the bottom, and whether this is the end.
    """

    def __init__(self) -> None:
        self._stacks: dict[Place, list[C]] = {}
        self._ended = False
        self._lock = threading.Lock()

    def take(self, origin: httpcore.Origin) -> tuple[C | None, list[C]]:
        """A connection that can be used, or None; and those that the caller has to close."""
        useless: list[C] = []
        with self._lock:
            stack = self._stacks.get(_place(origin), [])
            while stack:
                connection = stack.pop()
                if connection.is_available() and not connection.has_expired():
                    if stack and stack[0].has_expired():
                        useless.append(stack.pop(0))
                    return connection, useless
                useless.append(connection)
        return None, useless

    def keep(self, origin: httpcore.Origin, connection: C) -> bool:
        """Whether it is kept for another request; if not, the caller has to close it."""
        good = (
            connection.is_available()
            and not connection.has_expired()
            and not _has_surplus(connection)
        )
        with self._lock:
            if self._ended or not good:
                return False
            self._stacks.setdefault(_place(origin), []).append(connection)
            return True

    def end(self) -> list[C]:
        """All of them, for the caller to close; from now on none is kept."""
        # Without the lock: after a fork, a thread of the parent may hold it for ever.
        self._ended = True
        stacks, self._stacks = self._stacks, {}
        return [connection for stack in stacks.values() for connection in stack]


def _has_surplus(connection: Connection) -> bool:
    """Whether more was read than the answer: the next request would take it for its own."""
    state = _h11_of(connection)
    return state is not None and state.trailing_data[0] != b""


def _nothing_came(connection: Connection) -> bool:
    """Whether no byte of an answer was read when reading failed."""
    state = _h11_of(connection)
    if state is None or state.their_state is not h11.SEND_RESPONSE:
        return False
    return state.trailing_data[0] == b""


def _h11_of(connection: Connection) -> h11.Connection | None:
    """What has come, byte by byte. httpcore knows it and has no public word for it."""
    state = getattr(getattr(connection, "_connection", None), "_h11_state", None)
    return state if isinstance(state, h11.Connection) else None


def _place(origin: httpcore.Origin) -> Place:
    return origin.scheme, origin.host, origin.port


def to_httpcore(request: httpx.Request) -> httpcore.Request:
    """The same request in httpcore's words."""
    url = request.url
    return httpcore.Request(
        request.method,
        httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
        headers=request.headers.raw,
        content=request.stream,
        extensions=request.extensions,
    )


@contextlib.contextmanager
def as_httpx_errors(request: httpx.Request) -> Iterator[None]:
    """The errors of httpx are named as httpcore does."""
    try:
        yield
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException) as error:
        kind = getattr(httpx, type(error).__name__)
        raise kind(str(error), request=request) from error


class ClosedWhileIdle(httpx.ReadError):
    """A kept connection was closed before any byte of an answer: while it was idle, most likely."""


@contextlib.contextmanager
def asking(request: httpx.Request, connection: Connection) -> Iterator[None]:
    """As `as_httpx_errors`, from before a request is sent until the head of its answer is there.

    Raises:
        ClosedWhileIdle: In place of what says that the connection was closed, where that fits.
    """
    was_kept = connection.is_idle()
    try:
        with as_httpx_errors(request):
            yield
    except (httpx.ReadError, httpx.RemoteProtocolError) as error:
        if was_kept and _nothing_came(connection):
            raise ClosedWhileIdle(str(error), request=request) from error
        raise
