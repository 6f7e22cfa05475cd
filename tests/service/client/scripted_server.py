"""A server on a real socket that sends bytes as a test says, right or wrong."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.service.client.stand_ins import answer_to

Answer = Callable[[dict[str, Any]], bytes]
"""From what was asked to the bytes of its answer; none means that the connection is closed."""


@dataclass
class ScriptedServer:
    """Where it is, and what came.

    Attributes:
        url: Its base URL.
        script: The answers that come next; when it has ended, right ones.
        closes_after: Whether it closes a connection when it has spoken.
        asked: What was asked, in turn.
        connections: How many were made.
    """

    url: str = ""
    script: list[Answer] = field(default_factory=list)
    closes_after: bool = False
    asked: list[dict[str, Any]] = field(default_factory=list)
    connections: int = 0


def right_answer(asked: dict[str, Any], **changes: object) -> bytes:
    """The service's, as it goes over the wire."""
    body = json.dumps(answer_to(asked, **changes)).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


@contextlib.contextmanager
def scripted_server(*script: Answer, closes_after: bool = False) -> Iterator[ScriptedServer]:
    """A server that gives these answers and then right ones."""
    state = ScriptedServer(script=list(script), closes_after=closes_after)

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines, contextlib.suppress(OSError):
            while asked := _read(lines):
                state.asked.append(asked)
                answer = state.script.pop(0) if state.script else right_answer
                sent = answer(asked)
                connection.sendall(sent)
                if state.closes_after or not sent:
                    return

    def listen() -> None:
        with contextlib.suppress(OSError):  # the listener was closed
            while True:
                connection, _ = listener.accept()
                state.connections += 1
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        state.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        try:
            yield state
        finally:
            listener.shutdown(socket.SHUT_RDWR)  # wakes `accept`
            thread.join(timeout=30)


def _read(lines: Any) -> dict[str, Any] | None:  # noqa: ANN401  # a buffered reader of a socket
    length = 0
    while line := lines.readline().strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    body = lines.read(length)
    return json.loads(body) if body else None
