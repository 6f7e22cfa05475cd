"""A real Prometheus scrapes a running service: every query of every dashboard has an answer."""

from __future__ import annotations

import json
import math
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.deploy.repository import DEPLOY, dashboard_queries
from tests.end_to_end.running_service import RunningService, running

SCRAPE_S = 0.25
DEADLINE_S = 60


@contextmanager
def prometheus(service: RunningService, folder: Path) -> Iterator[httpx.Client]:
    """Prometheus with our rules, scraping `service` as the job adrel."""
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed")
    interval = f"{SCRAPE_S * 1000:.0f}ms"
    config = {
        "global": {
            "scrape_interval": interval,
            "scrape_timeout": interval,
            "evaluation_interval": interval,
        },
        "rule_files": [str(DEPLOY / "prometheus" / "rules" / "*.yml")],
        "scrape_configs": [
            {
                "job_name": "adrel",
                "static_configs": [{"targets": [service.url.removeprefix("http://")]}],
            }
        ],
    }
    file = folder / "prometheus.yml"  # JSON is YAML
    file.write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        program,
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            with httpx.Client(base_url=f"http://{address}", timeout=30) as client:
                yield client
        finally:
            process.terminate()


def traffic(service: RunningService, number: int) -> None:
    """Requests that end in several ways."""
    ads = [{"id": str(i), "text": f"shoe bag {number} {i}"} for i in range(10)]
    service.score({"query": "red shoe", "ads": ads, "min_score": 0.5})
    service.score({"query": "red shoe", "ads": ads, "timeout_ms": 0.001})
    service.score({"query": "red shoe", "ads": []})


def unanswered(client: httpx.Client, queries: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The queries that have no sample, or none that is a number."""
    left = []
    for title, query in queries:
        response = client.get("/api/v1/query", params={"query": query})
        if response.status_code == 503:
            return queries  # it is starting
        answer = response.json()
        assert answer["status"] == "success", (title, query, answer)
        samples = [float(series["value"][1]) for series in answer["data"]["result"]]
        if all(math.isnan(sample) for sample in samples):
            left.append((title, query))
    return left


def test_every_query_of_every_dashboard_returns_data(
    tiny_bundle_fp32: Path, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    left = dashboard_queries(rate_interval="30s")
    assert len(left) > 60
    shadow = ("--shadow-bundle", str(tiny_bundle_int8), "--shadow-share", "1")
    with running(tiny_bundle_fp32, *shadow) as service, prometheus(service, tmp_path) as client:
        stop_s = time.monotonic() + DEADLINE_S
        number = 0
        while left:
            assert time.monotonic() < stop_s, left
            traffic(service, number)
            number += 1
            try:
                left = unanswered(client, left)
            except httpx.ConnectError:
                continue  # it is starting
