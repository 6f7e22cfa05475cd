"""The configuration of this folder on free loopback ports, for the tests and the benchmark."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

CONFIGURATION = Path(__file__).resolve().parent / "nginx.conf"
START_S = 30
POLL_S = 0.01


class NginxEnded(Exception):
    """nginx ended, or does not listen in time."""


def free_port() -> int:
    """A port on which nobody listens now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def on_loopback(port: int, changes: Mapping[str, str]) -> str:
    """The configuration with other ports, and with what a caller changes in it.

    Args:
        port: Where to listen for callers.
        changes: Texts that occur once, and what stands in their places.

    Raises:
        ValueError: A text that does not occur once.
    """
    text = CONFIGURATION.read_text(encoding="utf-8")
    ports = {"8080": port, "8081": free_port()}
    listens = {f"listen {old};": f"listen 127.0.0.1:{new};" for old, new in ports.items()}
    for old, new in {**listens, **changes}.items():
        if text.count(old) != 1:
            raise ValueError(f"{old!r} occurs {text.count(old)} times in {CONFIGURATION.name}")
        text = text.replace(old, new)
    return text


def write(folder: Path, port: int, servers: Sequence[str], changes: Mapping[str, str]) -> None:
    """All that nginx reads, into the folder that will be its prefix."""
    (folder / "nginx.conf").write_text(on_loopback(port, changes), encoding="utf-8")
    lines = "".join(f"server {server};\n" for server in servers)
    (folder / "servers.conf").write_text(lines, encoding="utf-8")


@contextlib.contextmanager
def proxying(
    program: str, folder: Path, servers: Sequence[str], changes: Mapping[str, str]
) -> Iterator[int]:
    """Run nginx before these servers, until the block ends.

    Args:
        program: nginx.
        folder: Empty; for all that it reads and writes.
        servers: Each as `address:port`.
        changes: Of the configuration; see `on_loopback`.

    Yields:
        Its port on the loopback.

    Raises:
        NginxEnded: Says what nginx said.
    """
    port = free_port()
    write(folder, port, servers, changes)
    command = [program, "-p", f"{folder}/", "-c", "nginx.conf", "-g", "daemon off;"]
    with subprocess.Popen(  # noqa: S603  # a program that the caller chose
        command, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            wait_until_open(process, port)
            yield port
        finally:
            process.terminate()


def wait_until_open(process: subprocess.Popen[str], port: int) -> None:
    """Return when somebody listens on the port.

    Raises:
        NginxEnded: The process ended first, or `START_S` went by.
    """
    until_s = time.monotonic() + START_S
    while process.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if time.monotonic() > until_s:
            raise NginxEnded(f"nobody listens on port {port} within {START_S} s")
        time.sleep(POLL_S)
    raise NginxEnded(process.stderr.read() if process.stderr else "")
