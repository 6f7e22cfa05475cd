"""A real service in a process of its own, on a free loopback port."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.waiting import until

ROOT = Path(__file__).parents[2]
START_TIMEOUT_S = 60

# A client that keeps no connection; one client, since each new one reads all certificates anew.
EACH_ITS_OWN = httpx.Limits(max_keepalive_connections=0)


@dataclass
class RunningService:
    process: subprocess.Popen[str]
    url: str
    client: httpx.Client
    log: list[dict[str, Any]] = field(default_factory=list)
    plain_lines: list[str] = field(
        default_factory=list
    )  # what is no JSON; of the interpreter itself

    def score(self, body: Any, **options: Any) -> httpx.Response:  # noqa: ANN401  # any JSON
        return self.client.post("/v1/score", json=body, **options)

    def reaches(self, sample: str, holds: Callable[[float], bool]) -> None:
        """Ask for a metric until it is as wanted; fails when it never is."""
        until(lambda: holds(self.metric(sample)), f"{sample} never is as wanted")

    def metric(self, sample: str) -> float:
        """The value of one line of the exposition, as `name{label="value"}`."""
        for line in self.client.get("/metrics").text.splitlines():
            name, _, value = line.rpartition(" ")
            if name == sample:
                return float(value)
        raise AssertionError(f"no sample {sample}")


def environment(**variables: str) -> dict[str, str]:
    plain = {k: v for k, v in os.environ.items() if not k.startswith("ADREL_")}
    return {**plain, **variables}


@contextmanager
def running(
    bundle: Path, *arguments: str, program: Sequence[str] = ("service",), **variables: str
) -> Iterator[RunningService]:
    """Serve `bundle` until the block ends; settings as arguments or ADREL_ variables.

    `program` is the module that serves, with options of its own.
    """
    command = [sys.executable, "-m", *program, "--bundle", str(bundle), "--port", "0", *arguments]
    with subprocess.Popen(
        command, cwd=ROOT, env=environment(**variables), stderr=subprocess.PIPE, text=True
    ) as process:
        lines: queue.Queue[dict[str, Any] | None] = queue.Queue()
        log: list[dict[str, Any]] = []
        plain_lines: list[str] = []

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                if not line.startswith("{"):
                    plain_lines.append(line)
                    continue
                entry = json.loads(line)
                log.append(entry)
                lines.put(entry)
            lines.put(None)

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            url = _wait_for_url(lines)
            with httpx.Client(base_url=url, timeout=60) as client:
                yield RunningService(process, url, client, log, plain_lines)
        finally:
            process.terminate()
            process.wait(timeout=30)
            reader.join(timeout=30)


def _wait_for_url(lines: queue.Queue[dict[str, Any] | None]) -> str:
    while (entry := lines.get(timeout=START_TIMEOUT_S)) is not None:
        if entry["message"] == "listening":
            return str(entry["url"])
    raise AssertionError("the service stopped before it listened")
