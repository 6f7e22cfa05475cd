"""One run of locust in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from deploy.loadtest.request_record import RecordedRun, read_run
from deploy.loadtest.user_counts import Shape

ROOT = Path(__file__).resolve().parents[2]
LOCUSTFILE = ROOT / "deploy" / "loadtest" / "locustfile.py"

# Start, the last answers and the end; a run that takes longer than this on top hangs.
OVERHEAD_S = 60
FAULTS_SEEN = 1  # locust's exit code where pairs met a fault: the records tell which
LAST_LINES = 12


class LocustFailed(Exception):
    """locust itself could not run; has its last words."""


@dataclass(frozen=True, slots=True)
class LocustRun:
    """What locust is told to do.

    Attributes:
        seconds: How long requests are sent.
        users: Ad servers, or the most of them that a shape has.
        user_rps: Requests a second of each in an open loop; 0 for a closed one.
        shape: How their number changes.
        base_users: See `user_counts.users_at`.
        timeout_ms: Of each request, where it is another one than that of the load test.
    """

    seconds: int
    users: int
    user_rps: float
    shape: Shape = "steady"
    base_users: int = 1
    timeout_ms: float | None = None

    def options(self) -> list[str]:
        """As locust's command line has them."""
        options = ["--users", str(self.users), "--spawn-rate", str(self.users)]
        options += ["--run-time", f"{self.seconds}s", "--user-rps", f"{self.user_rps:.6g}"]
        options += ["--shape", self.shape, "--base-users", str(self.base_users)]
        if self.timeout_ms is not None:
            options += ["--timeout-ms", f"{self.timeout_ms:g}"]
        return options


def run_locust(url: str, run: LocustRun, options: Sequence[str]) -> RecordedRun:
    """One run with its requests; at least one.

    Args:
        url: Of the service.
        run: What to do.
        options: More of locust's options; those of `run` win.

    Raises:
        LocustFailed: It ended in another way than it should, or sent nothing.
    """
    with tempfile.TemporaryDirectory(prefix="adrel-loadtest-") as folder:
        command = [sys.executable, "-m", "locust", "-f", str(LOCUSTFILE), "--headless"]
        command += ["--only-summary", "--host", url, "--record", folder]
        command += [*options, *run.options()]
        try:
            ended = subprocess.run(  # noqa: S603  # our own command
                command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                check=False,
                timeout=run.seconds + OVERHEAD_S,
            )
        except subprocess.TimeoutExpired as error:
            raise LocustFailed(f"locust did not end within {error.timeout:g} s") from error
        recorded = read_run(Path(folder))
    if ended.returncode not in (0, FAULTS_SEEN) or not recorded.requests:
        last = "\n".join(ended.stderr.splitlines()[-LAST_LINES:])
        raise LocustFailed(
            f"locust ended with {ended.returncode} after {len(recorded.requests)} requests:\n{last}"
        )
    return recorded
