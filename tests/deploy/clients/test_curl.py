"""The curl lines of deploy/clients/README.md."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from tests.deploy.clients.stand_in_server import standing_in
from tests.deploy.clients.toolchains import CLIENTS, PLAIN, tool
from tests.end_to_end.running_service import RunningService


def run_lines(index: int, url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block of shell lines as shown, but against `url` and with time to spare."""
    readme = (CLIENTS / "README.md").read_text(encoding="utf-8")
    lines = re.findall(r"```sh\n(.*?)```", readme, re.DOTALL)[index]
    for old, new in (("http://127.0.0.1:8000", url), ("--max-time 0.3", "--max-time 30")):
        lines = lines.replace(old, new)
    bash, _ = tool("bash"), tool("curl")
    return subprocess.run(
        [bash, "-c", lines], cwd=folder, env=PLAIN, capture_output=True, text=True, check=False
    )


def test_two_requests_are_answered_on_one_connection(tmp_path: Path) -> None:
    with standing_in() as server:
        done = run_lines(0, server.url, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    answers = done.stdout.replace("}{", "}\n{").splitlines()
    assert [json.loads(answer)["scores"][0]["id"] for answer in answers] == ["A", "B"]
    assert [headers["x-request-timeout-ms"] for headers in server.headers] == ["250", "250"]
    assert server.n_connections == 1


def test_a_wrong_request_prints_its_code_and_fails(service: RunningService, tmp_path: Path) -> None:
    done = run_lines(1, service.url, tmp_path)
    assert done.returncode == 22
    assert json.loads(done.stdout)["error"]["code"] == "invalid_request"
