from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

from tests.deploy.repository import DEPLOY


@contextmanager
def answering(status: int) -> Iterator[int]:
    """A server on a free loopback port that answers /readyz with `status`; gives the port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server's name
            self.send_response(status if self.path == "/readyz" else 404)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def check(port: int) -> subprocess.CompletedProcess[str]:
    # As in the image; a proxy in the environment must not be asked.
    return subprocess.run(
        [sys.executable, "-I", "-S", str(DEPLOY / "docker" / "healthcheck.py")],
        env={"ADREL_PORT": str(port), "http_proxy": "http://127.0.0.1:1"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_ready_service_is_healthy() -> None:
    with answering(200) as port:
        assert check(port).returncode == 0


def test_a_service_that_is_not_ready_is_not_healthy() -> None:
    with answering(503) as port:
        checked = check(port)
    assert checked.returncode == 1
    assert "503" in checked.stderr


def test_a_port_where_nobody_listens_is_not_healthy() -> None:
    with answering(200) as port:
        pass
    checked = check(port)
    assert checked.returncode == 1
    assert checked.stderr.startswith("not ready: ")
