"""Starts a server, waits until it answers, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START_S = 90
STOP_S = 8
POLL_S = 0.1


class NotServing(Exception):
    """The server ended, or did not answer in time."""


@contextlib.contextmanager
def running(
    command: Sequence[str], environ: Mapping[str, str], log_file: Path, path: str, probe: bytes
) -> Iterator[int]:
    """A server on a free port of the loopback, for as long as the block takes.

    Args:
        command: Program and arguments; `--port` is added.
        environ: Variables on top of ours.
        log_file: Gets all that it prints.
        path: Where `probe` is posted until the answer is a 200.
        probe: A body.

    Yields:
        The port.

    Raises:
        NotServing: It ended, or did not answer within `START_S`.
    """
    port = _free_port()
    with log_file.open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # our own command
            [*command, "--port", str(port)],
            env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
            cwd=log_file.parent,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait_until_it_answers(process, port, path, probe)
        yield port
    finally:
        _stop(process)


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_it_answers(
    process: subprocess.Popen[bytes], port: int, path: str, probe: bytes
) -> None:
    last = "no connection"
    deadline_s = time.monotonic() + START_S
    while time.monotonic() < deadline_s:
        if process.poll() is not None:
            raise NotServing(f"it ended with {process.returncode}")
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            with contextlib.closing(connection):
                connection.request("POST", path, probe, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                if answer.status == http.client.OK:
                    return
                last = f"{answer.status} {answer.read(300)!r}"
        except (OSError, http.client.HTTPException):
            pass
        time.sleep(POLL_S)
    raise NotServing(f"no answer within {START_S} s; last: {last}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask the whole process group to end, then make it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_S)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)  # workers that outlived their parent too
    process.wait(STOP_S)
