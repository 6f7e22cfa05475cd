"""The service under test: started, broken, watched and stopped from here."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deploy.benchmarks.http_connection import Address

HOST = "127.0.0.1"
ROOT = Path(__file__).resolve().parents[2]
START_S = 90.0
LOOK_S = 0.05


class NotStarted(Exception):
    """The service ended, or was not ready in time; the message has the end of its log."""


class Subject:
    """One service after the other on one port, all with the same options.

    Attributes:
        address: Where callers find it.
        folder: For this run alone; `live` in it links to the bundle that is served.
    """

    def __init__(self, bundle: Path, options: Sequence[str] = (), port: int = 0) -> None:
        """Nothing is started yet.

        Args:
            bundle: To serve first.
            options: Of the service.
            port: 0 takes a free one.
        """
        self._own = tempfile.TemporaryDirectory(prefix="adrel-faults-")
        self.folder = Path(self._own.name)
        self._fault_file, self._log = self.folder / "fault", self.folder / "log"
        self._options = options
        self.address: Address = (HOST, port or _free_port())
        self._process: subprocess.Popen[bytes] | None = None
        self.serve(bundle)

    def serve(self, bundle: Path) -> None:
        """Have the link to the bundle lead elsewhere, in one step; a reload or start reads it."""
        made = self.folder / "live.new"
        made.symlink_to(bundle.resolve())
        made.rename(self.folder / "live")

    async def start(self) -> None:
        """Start, and wait until it is ready.

        Raises:
            NotStarted: It is not.
        """
        command = [sys.executable, "-m", "deploy.faults.faulty_service"]
        command += ["--fault-file", str(self._fault_file), "--bundle", str(self.folder / "live")]
        command += ["--port", str(self.address[1]), *self._options]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220, S603  # quick; our own command
                command, cwd=ROOT, stderr=log
            )
        if not await self.eventually(lambda: self.status("/readyz") == 200, START_S):
            raise NotStarted(self._log.read_text(encoding="utf-8")[-2000:])

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None  # noqa: S101  # started before
        self._process.send_signal(number)

    async def exit_code(self, within_s: float) -> int | None:
        """How it ended; None where it did not."""
        assert self._process is not None  # noqa: S101  # started before
        await self.eventually(lambda: self._ended, within_s)
        return self._process.poll()

    @property
    def _ended(self) -> bool:
        return self._process is None or self._process.poll() is not None

    def break_it(self, fault: str) -> None:
        """Switch a fault on; see `faulty_service`."""
        made = self._fault_file.with_suffix(".new")
        made.write_text(fault, encoding="ascii")
        made.rename(self._fault_file)

    def mend(self) -> None:
        """Switch the fault off."""
        self._fault_file.unlink(missing_ok=True)

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body; status 0 where there is no answer within a second."""
        with contextlib.closing(http.client.HTTPConnection(*self.address, timeout=1)) as connection:
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                return answer.status, answer.read()
            except (OSError, http.client.HTTPException):
                return 0, b""

    def status(self, path: str) -> int:
        """Of the answer; 0 where there is none."""
        return self.get(path)[0]

    def metric(self, sample: str) -> float:
        """One sample of the exposition; nan where it is not there."""
        for line in self.get("/metrics")[1].decode().splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        return float("nan")

    def logged(self, message: str) -> list[dict[str, Any]]:
        """The log's entries with this message; plain lines count by what they contain."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        entries = [
            json.loads(line) if line.startswith("{") else {"message": line} for line in lines
        ]
        return [entry for entry in entries if message in entry["message"]]

    async def eventually(self, holds: Callable[[], bool], within_s: float) -> bool:
        """Whether it comes to hold within so many seconds; the load goes on meanwhile."""
        until_s = time.monotonic() + within_s
        while not await asyncio.to_thread(holds):
            if time.monotonic() > until_s or (self._ended and not holds()):
                return False
            await asyncio.sleep(LOOK_S)
        return True

    def close(self) -> None:
        """End it, whatever state it is in, and forget its files."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._own.cleanup()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind((HOST, 0))
        port: int = listener.getsockname()[1]
        return port
