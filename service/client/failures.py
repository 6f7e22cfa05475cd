"""From statuses and network errors to the client's own: the only place that knows either."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from service.client.connections import ClosedWhileIdle
from service.client.errors import (
    AdrelError,
    BadAnswer,
    ConnectionFailed,
    DeadlineExceeded,
    NotReady,
    Overloaded,
    RequestRefused,
    ServiceFailed,
    WrongEndpoint,
)
from service.client.wire import error_fields

# Of a host that there is not. Others tell of the resolver, which may know the host later.
NO_SUCH_HOST = {
    getattr(socket, name)
    for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY")
    if hasattr(socket, name)  # not all of them on every system
}

# A handshake that broke off says nothing about the other side's certificate or protocol.
BROKE_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)

OF_STATUS: Mapping[int, type[AdrelError]] = {
    401: WrongEndpoint,
    403: WrongEndpoint,
    404: WrongEndpoint,
    405: WrongEndpoint,
    413: RequestRefused,
    415: RequestRefused,
    422: RequestRefused,
    429: Overloaded,
    503: NotReady,
    504: DeadlineExceeded,
}


def error_of_status(status: int, headers: Mapping[str, str], body: bytes) -> AdrelError:
    """The error that an answer other than 200 stands for.

    Of a 4xx that is not in the table, such as 408 for a slow connection, no request is to blame.
    """
    ours = error_fields(body)
    code, message, details = ours or (f"http_{status}", f"{body[:200]!r}", ())
    if status in OF_STATUS:
        kind = OF_STATUS[status]
    elif 300 <= status < 400:  # not followed: the body would be sent twice within one deadline
        kind, message = WrongEndpoint, f"leads to {headers.get('location', 'nowhere')!r:.200}"
    elif 500 <= status < 600 or (400 <= status < 500 and ours):
        kind = ServiceFailed
    else:
        kind = BadAnswer
    return kind(code, message, details, _retry_after_s(headers, details), status)


def _retry_after_s(
    headers: Mapping[str, str], details: Sequence[Mapping[str, Any]]
) -> float | None:
    """The service's own figure, else the header in whole seconds. Dates are not read."""
    for detail in details:
        after_ms = detail.get("retry_after_ms")
        if isinstance(after_ms, int | float) and 0 <= after_ms <= 1e9:
            return after_ms / 1000
    text = headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def error_of_network(error: httpx.RequestError) -> AdrelError | None:
    """The error that a failed exchange stands for; None: time was over."""
    # The time for each step is what is left of the call, so any timeout is the end of it.
    if isinstance(error, httpx.TimeoutException):
        return None
    if isinstance(error, httpx.LocalProtocolError):
        return WrongEndpoint("unsendable_request", "the request and its headers are not HTTP")
    message = str(error) or type(error).__name__
    if isinstance(error, httpx.ConnectError) and (code := _wrong_address(error)):
        return WrongEndpoint(code, message)
    return ConnectionFailed(message, isinstance(error, httpx.ConnectError | ClosedWhileIdle))


def _wrong_address(error: httpx.ConnectError) -> str | None:
    """What is wrong with the address; None where a connection may come about at another time."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, socket.gaierror) and cause.errno in NO_SUCH_HOST:
            return "unknown_host"
        if isinstance(cause, ssl.SSLError) and not isinstance(cause, BROKE_OFF):
            return "tls_failed"
        cause = cause.__cause__
    return None
