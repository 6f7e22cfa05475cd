"""A server on a real socket that answers every ad and tells who asked on which connection."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.service.client.stand_ins import answer_to


@dataclass
class AnsweringServer:
    """Where it is, and what came.

    Attributes:
        url: Its base URL.
        ports: The caller's port for each request; the same one for the same connection.
        closed: Ports of connections that have ended.
        hang_up_after: How many requests a connection may send before it is closed; 0: any number.
        dropped: Requests, counted from 0, whose connection is closed instead of an answer.
    """

    url: str = ""
    ports: list[int] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    hang_up_after: int = 0
    dropped: tuple[int, ...] = ()
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_until_closed(self, n_connections: int) -> None:
        """Until so many connections have ended.

        Raises:
            TimeoutError: They have not, within 30 s.
        """
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.closed) >= n_connections, timeout=30):
                raise TimeoutError(f"closed: {self.closed}")


@contextlib.contextmanager
def answering_server() -> Iterator[AnsweringServer]:
    state = AnsweringServer()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        n_requests = 0

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            state.ports.append(self.client_address[1])
            if len(state.ports) - 1 in state.dropped:
                self.close_connection = True
                return
            model = {"name": "tiny", "version": str(self.client_address[1])}
            answer = json.dumps(answer_to(asked, model=model)).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            self.n_requests += 1
            # The answer announces nothing: the caller finds the connection closed.
            self.close_connection = self.n_requests == state.hang_up_after

        def finish(self) -> None:
            super().finish()
            with state.changed:
                state.closed.append(self.client_address[1])
                state.changed.notify_all()

        def log_message(self, *_: object) -> None:
            """Nothing on the test's output."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield state
        finally:
            server.shutdown()
            thread.join()
