"""Connections whose peers are idle, slow or greedy, ended in time.

uvicorn's parser protocol bounds neither the time nor the bytes of a request's head, nor the time
before the first one or for a body, nor how long a peer may leave an answer unread. Each would let
one machine hold connections, and what they keep in memory, for ever.
"""

from __future__ import annotations

import asyncio
import http
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar, Literal, cast

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CutReason = Literal["limit", "slow", "head_too_large", "pipelined", "malformed"]
"""Why a connection is ended by us; the metrics count each."""

# Request line and fields. More than the cookies and traces of any proxy; other servers allow 8 to
# 64 KiB. For the fields after a chunked body (trailers) it holds too.
MAX_HEAD_BYTES = 65_536
# Fed to the parser at once, so that no single read can bring much more than the limit.
SLICE_BYTES = 16_384

# Requests that were sent before the answer to the one before; callers of a service seldom do.
MAX_PIPELINED = 16


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What peers may take of the service without asking it anything.

    Attributes:
        max_connections: Open at once; more are turned away.
        body_timeout_s: Time for a body, from the end of its head.
        on_cut: Hears why a connection is ended by us.
        on_late_body: Gets the ASGI scope of a request that waits for its body in vain. It is woken
            with a message without content, so that it can say so in its own words.
        owed_s: Time for the rest of a head that has begun, and for an answer to be taken.
    """

    max_connections: int
    body_timeout_s: float
    on_cut: Callable[[CutReason], None]
    on_late_body: Callable[[MutableMapping[str, Any]], None]
    owed_s: float = 10


class Phase(Enum):
    """What the next byte of a peer belongs to."""

    BETWEEN = auto()
    HEAD = auto()
    BODY = auto()


class GuardedProtocol(HttpToolsProtocol):
    """One connection; see `guarded` for how it gets its limits."""

    limits: ClassVar[ConnectionLimits]

    _phase = Phase.BETWEEN
    _slice_bytes = 0  # that the parser has now
    _head_bytes = 0  # whole slices since the head began, or since the body's last byte
    _doubtful_bytes = 0  # of them, the slice in which the head began: it may hold more than that
    _lost = False
    _owed: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Take the connection, or turn it away; an idle one ends like any other."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.max_connections:
            message = f"the limit is {self.limits.max_connections} connections"
            self._turn_away("limit", 503, "too_many_connections", message)
            return
        self._wait_idly()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers, for good: answers may still be made for a connection that is gone."""
        self._lost = True
        self._settle()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, in slices, as long as it keeps to the limits."""
        if len(data) <= SLICE_BYTES:
            self._feed(data)
            return
        for start in range(0, len(data), SLICE_BYTES):
            if self.transport.is_closing():
                break
            self._feed(data[start : start + SLICE_BYTES])

    def on_message_begin(self) -> None:
        """Begin to count the head, and its time."""
        super().on_message_begin()
        self._phase = Phase.HEAD
        self._head_bytes = self._doubtful_bytes = self._slice_bytes
        self._settle()

    def on_headers_complete(self) -> None:
        """Start the request, unless its head is too large or too many wait in line."""
        self._phase = Phase.BODY
        self._settle()
        if self._head_bytes > MAX_HEAD_BYTES and self._written_head_bytes() > MAX_HEAD_BYTES:
            self._turn_away_head()
        if self.transport.is_closing():  # a slice may hold more than what ended the connection
            return
        super().on_headers_complete()
        if len(self.pipeline) > MAX_PIPELINED and not self.transport.is_closing():
            self._cut("pipelined")

    def on_body(self, body: bytes) -> None:
        """Take a part of the body of a request that was let in."""
        self._head_bytes = self._doubtful_bytes = 0
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        """The peer owes nothing more."""
        self._phase = Phase.BETWEEN
        if not self.transport.is_closing():
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Turn away what is no HTTP; uvicorn calls it where the parser gave up."""
        if not self.transport.is_closing():  # what follows the request that ended it is nobody's
            self._turn_away("malformed", 400, "malformed_request", msg)

    def _unsupported_upgrade_warning(self) -> None:
        """Say nothing: an offer that is not taken is no fault (RFC 9110, 7.8).

        The request is answered and counted as any other; some clients offer h2c with their first.
        """

    def on_response_complete(self) -> None:
        """The answer is written; see that it is taken, and that what was asked comes to an end."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """The peer does not read."""
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        """The peer reads again."""
        super().resume_writing()
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        """End an idle connection, with the answers that its peer never took."""
        super().timeout_keep_alive_handler()
        self._watch()

    def _feed(self, data: bytes) -> None:
        self._slice_bytes = len(data)
        self._head_bytes += len(data)
        super().data_received(data)
        sure_bytes = self._head_bytes - self._doubtful_bytes
        if sure_bytes > MAX_HEAD_BYTES and not self.transport.is_closing():
            if self._phase is Phase.HEAD:
                self._turn_away_head()
            elif self._phase is Phase.BODY:
                self._cut("head_too_large")
        self._watch()

    def _written_head_bytes(self) -> int:
        """Of a whole head, as it is written with one space behind each colon."""
        line = len(self.parser.get_method()) + len(self.url) + len("  HTTP/1.1\r\n")
        fields = sum([len(name) + len(value) + len(": \r\n") for name, value in self.headers])
        return line + fields + len("\r\n")

    def _turn_away_head(self) -> None:
        message = (
            f"the request's head is over the limit of {MAX_HEAD_BYTES} bytes; "
            "send fewer or shorter headers"
        )
        self._turn_away("head_too_large", 431, "head_too_large", message)

    @property
    def _answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _peer_owes(self) -> bool:
        """The rest of a request, or to read its answers."""
        return (
            self._phase is not Phase.BETWEEN
            or self.flow.write_paused
            or (self.transport.is_closing() and self.transport.get_write_buffer_size() > 0)
        )

    def _watch(self) -> None:
        if self._lost:
            return
        if self._peer_owes():
            if self._owed is None:
                in_body = self._phase is Phase.BODY
                within_s = self.limits.body_timeout_s if in_body else self.limits.owed_s
                self._owed = self.loop.call_later(within_s, self._out_of_time)
            return
        self._settle()
        idle = self._phase is Phase.BETWEEN and self._answered and not self.transport.is_closing()
        if idle and self.timeout_keep_alive_task is None:
            # Bytes that began no request have stopped uvicorn's timer.
            self._wait_idly()

    def _wait_idly(self) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def _settle(self) -> None:
        if self._owed is not None:
            self._owed.cancel()
            self._owed = None

    def _out_of_time(self) -> None:
        self._owed = None
        if not self._answered and not self.flow.write_paused:
            in_line = any(cycle is self.cycle for cycle, _ in self.pipeline)
            if self._phase is Phase.BODY and not in_line:
                self.limits.on_late_body(cast("dict[str, Any]", self.scope))
                self.cycle.message_event.set()
            self._watch()  # what is in line may not even be read before its turn
        elif self._phase is Phase.HEAD and not self.transport.is_closing():
            message = f"the request's head was not complete after {self.limits.owed_s:g} s"
            self._turn_away("slow", 408, "request_timeout", message)
        elif self._peer_owes():
            self._cut("slow")

    def _turn_away(self, reason: CutReason, status: int, code: str, message: str) -> None:
        """Say why, and end the connection; where another answer is due, without a word."""
        if self._answered:
            body = orjson.dumps({"error": {"code": code, "message": message, "details": []}})
            head = (
                f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\n"
                f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
                "connection: close\r\n\r\n"
            )
            self.transport.write(head.encode() + body)
            self.transport.close()
            self.limits.on_cut(reason)
            self._watch()
        else:
            self._cut(reason)

    def _cut(self, reason: CutReason) -> None:
        self.transport.abort()
        self.limits.on_cut(reason)


def guarded(limits: ConnectionLimits) -> type[GuardedProtocol]:
    """The protocol with its limits; uvicorn makes one for each connection."""

    class Guarded(GuardedProtocol):
        pass

    Guarded.limits = limits
    return Guarded
