"""A real redis on a Unix socket, to be used, stopped, killed and replaced."""

from __future__ import annotations

import contextlib
import re
import shutil
import signal
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import until

DEADLINE_S = 30


class RunningRedis:
    """At a place that outlives it: another one may come there."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        self.url = f"unix://{path}"
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed")
        self.path.unlink(missing_ok=True)
        fixed = ("--port", "0", "--unixsocket", str(self.path), "--save", "", "--appendonly", "no")
        self._process = subprocess.Popen(
            [program, *fixed, *self._options], cwd=self.path.parent, stdout=subprocess.DEVNULL
        )
        until(lambda: bool(re.search("PONG|NOAUTH", self.ask("PING"))), "redis does not start")

    def ask(self, *command: str) -> str:
        """The answer as redis' own command line shows it; also that it refuses, or is not there."""
        program = ["redis-cli", "-s", str(self.path), *command]
        answered = subprocess.run(program, stdout=subprocess.PIPE, check=False)
        return answered.stdout.decode(errors="replace").strip()  # keys are no text

    def send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=DEADLINE_S)
            self._process = None


@contextmanager
def redis_at(path: Path, *options: str) -> Iterator[RunningRedis]:
    """A redis until the block ends."""
    redis = RunningRedis(path, *options)
    redis.start()
    try:
        yield redis
    finally:
        redis.kill()


class _Nonsense(socketserver.StreamRequestHandler):
    pieces: tuple[bytes, ...] = ()

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # it has had enough of us
            while self.request.recv(2**16):
                for piece in self.pieces:
                    self.request.sendall(piece)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True  # each ends with its connection


@contextmanager
def nonsense_at(path: Path, *pieces: bytes) -> Iterator[None]:
    """A server that answers whatever comes with bytes of its own, piece by piece."""
    path.unlink(missing_ok=True)
    handler = type("Nonsense", (_Nonsense,), {"pieces": pieces})
    with _Server(str(path), handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        try:
            yield
        finally:
            server.shutdown()
            serving.join(DEADLINE_S)
