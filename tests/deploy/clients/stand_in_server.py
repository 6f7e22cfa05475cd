"""A server on a free loopback port that answers as a test says, and counts."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.service.client.stand_ins import answer_to


class Hangs:
    """Waits until the caller closes the connection."""


class Closes:
    """Closes the connection."""


@dataclass(frozen=True)
class Reply:
    """What is sent, and what follows if `cut_bytes` of the body are kept back."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    cut_bytes: int = 0
    after_cut: Hangs | Closes | None = None


@dataclass(frozen=True)
class Raw:
    """Sends bytes, HTTP or not, and closes the connection."""

    content: bytes


@dataclass(frozen=True)
class Streams:
    """A chunked 200 that never ends, one piece after another, `pause_s` between them."""

    piece: bytes
    pause_s: float = 0.0


Behaviour = Reply | Raw | Streams | Hangs | Closes
Script = Callable[[dict[str, Any]], Behaviour]


def scored(asked: dict[str, Any], **changes: object) -> Reply:
    return Reply(200, json.dumps(answer_to(asked, **changes)).encode())


def refused(status: int, code: str, retry_after_ms: float | None = None, **headers: str) -> Reply:
    details = [] if retry_after_ms is None else [{"retry_after_ms": retry_after_ms}]
    error = {"code": code, "message": f'because of "{code}"', "details": details}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps({"error": error}).encode(), named)


@dataclass
class StandIn:
    """Answers with what stands next in `script`, then with scores.

    Attributes:
        url: Where it is.
        script: Behaviours, or functions of the body to one.
        asked: Bodies received.
        headers: Of each body's request, with small letters.
        n_connections: Opened by callers.
        caller_left: Whether one closed the connection on which it was kept waiting.
        over: Whether the test has ended.
    """

    url: str = ""
    script: list[Behaviour | Script] = field(default_factory=list)
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    n_connections: int = 0
    caller_left: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next_for(self, asked: dict[str, Any], headers: Mapping[str, str]) -> Behaviour:
        with self.lock:
            self.asked.append(asked)
            self.headers.append(headers)
            entry = self.script.pop(0) if self.script else scored
        return entry if isinstance(entry, Behaviour) else entry(asked)


def _handler(stand_in: StandIn) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # a body is sent apart from its headers

        def do_POST(self) -> None:  # http.server's name
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = stand_in.next_for(json.loads(content), headers)
            ending: Hangs | Closes | None = Closes()
            try:
                ending = _send(self, reply, stand_in.over)
                if isinstance(ending, Hangs) and self.rfile.read(1) == b"":
                    stand_in.caller_left.set()
            except ConnectionError:  # while a stream was sent
                stand_in.caller_left.set()
            self.close_connection = ending is not None

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def _send(
    handler: BaseHTTPRequestHandler, reply: Behaviour, over: threading.Event
) -> Hangs | Closes | None:
    """Do as a test says; what follows."""
    match reply:
        case Raw(content):
            handler.wfile.write(content)
            return Closes()
        case Streams(piece, pause_s):
            handler.send_response(200)
            handler.send_header("Transfer-Encoding", "chunked")
            handler.end_headers()
            while not over.wait(pause_s):
                handler.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            return Closes()
        case Reply():
            handler.send_response(reply.status)
            for name, value in reply.headers.items():
                handler.send_header(name, value)
            handler.send_header("Content-Length", str(len(reply.body)))
            handler.end_headers()
            handler.wfile.write(reply.body[: len(reply.body) - reply.cut_bytes])
            return reply.after_cut
    return reply


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a kept connection is read until its caller closes it

    def __init__(
        self, stand_in: StandIn, tls: ssl.SSLContext | None, address: tuple[str, int]
    ) -> None:
        super().__init__(address, _handler(stand_in))
        self._stand_in = stand_in
        self._tls = tls
        self._connections: set[socket.socket] = set()

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401  # as there
        with self._stand_in.lock:
            self._stand_in.n_connections += 1
            self._connections.add(request)
        if self._tls is None:
            super().finish_request(request, client_address)
            return
        with (
            contextlib.suppress(OSError),  # the caller may not trust the certificate
            self._tls.wrap_socket(request, server_side=True) as wrapped,
        ):
            super().finish_request(wrapped, client_address)

    def hang_up(self) -> None:
        """Close the connections that callers keep, as the end of a process would."""
        for connection in self._connections:
            with contextlib.suppress(OSError):  # closed before
                connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def standing_in(
    *script: Behaviour | Script,
    tls: ssl.SSLContext | None = None,
    address: tuple[str, int] = ("127.0.0.1", 0),
) -> Iterator[StandIn]:
    """The server, until the block ends."""
    stand_in = StandIn(script=list(script))
    with _Server(stand_in, tls, address) as server:
        scheme = "http" if tls is None else "https"
        stand_in.url = f"{scheme}://{address[0]}:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield stand_in
        finally:
            stand_in.over.set()
            server.shutdown()
            thread.join()
            server.hang_up()
