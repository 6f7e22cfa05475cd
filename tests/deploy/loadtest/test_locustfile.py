"""locust itself, in processes of its own: it patches the standard library for gevent."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from deploy.benchmarks.poisson_arrivals import endless_arrivals_s
from deploy.loadtest.locust_options import KEY_VARIABLE
from deploy.loadtest.request_record import read_run
from service.api.schemas import ScoreRequest
from tests.deploy.loadtest.answers import answer
from tests.deploy.repository import DEPLOY, ROOT

STALL_S = 1.0


class FakeService:
    """Answers as `statuses` says, by turns; the first answer comes after `stall_s`, and no other
    before it."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: set[str | None] = set()
        self.connections: set[Any] = set()
        self.statuses = itertools.cycle(["ok"])
        self.stall_s = 0.0
        self.asked_in_stall = 0
        self._stalled = threading.Event()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # keep-alive

            def do_POST(self) -> None:  # http.server's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.bodies.append(body)
                service.keys.add(self.headers["Authorization"])
                service.connections.add(self.client_address)
                service.stall(is_first=len(service.bodies) == 1)
                ids = [ad["id"] for ad in body["ads"]]
                rest = [next(service.statuses)] * (len(ids) - 1)
                content = answer(ids, ["ok", *rest])
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True  # of connections that locust leaves open

    def stall(self, *, is_first: bool) -> None:
        if not is_first:
            self._stalled.wait()
            return
        threading.Event().wait(self.stall_s)
        self.asked_in_stall = len(self.bodies)
        self._stalled.set()


@pytest.fixture
def fake_service() -> Iterator[FakeService]:
    service = FakeService()
    thread = threading.Thread(target=service.server.serve_forever)
    thread.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    thread.join()


def locust(host: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "-m", "locust", "-f", str(DEPLOY / "loadtest" / "locustfile.py")),
        *("--headless", "--only-summary", "--host", host, "--ads", "4", "--timeout-ms", "5000"),
        *options,
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )


def url_of(service: FakeService) -> str:
    return f"http://127.0.0.1:{service.server.server_port}"


def test_a_closed_loop_asks_in_turn_and_overload_is_no_failure_of_the_run(
    fake_service: FakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_service.statuses = itertools.cycle(["ok", "cached", "deadline"])
    monkeypatch.setenv(KEY_VARIABLE, "a key")
    run = locust(url_of(fake_service), "--users", "2", "--spawn-rate", "2", "--run-time", "1s")
    n_bodies = len(fake_service.bodies)
    assert n_bodies >= 4, run.stderr
    assert len(fake_service.connections) == 2  # one for each user, kept
    assert fake_service.keys == {"Bearer a key"}
    for body in fake_service.bodies[:20]:
        parsed = ScoreRequest.model_validate(body)
        assert len(parsed.ads) == 4
        assert parsed.timeout_ms == 5000
    assert "partial: some ads have no score" in run.stderr
    assert f"goodput: {4 * n_bodies} pairs asked for" in run.stdout  # those under way as well
    assert run.returncode == 0


def test_an_open_loop_sends_at_its_instants_whether_answers_come_or_not(
    fake_service: FakeService, tmp_path: Path
) -> None:
    fake_service.stall_s = STALL_S
    run = locust(
        url_of(fake_service),
        *("--user-rps", "20", "--shape", "ramp", "--base-users", "1", "--users", "3"),
        *("--run-time", "2s", "--seed", "7", "--record", str(tmp_path)),
    )
    assert run.returncode == 0, run.stderr
    recorded = read_run(tmp_path)
    records = recorded.requests
    assert len(records) == len(fake_service.bodies)
    # Nothing was answered in the stall, and all the same more was asked; that it had to wait shows.
    assert fake_service.asked_in_stall > 5
    assert records[0].latency_ms > 1000 * STALL_S
    assert records[4].latency_ms > 100
    by_user: dict[str, int] = defaultdict(int)
    for body in fake_service.bodies:
        by_user[body["request_id"].rpartition("-")[0]] += 1
    assert len(by_user) > 1  # the ramp brought more
    # Until the ramp's first second is over there is one user, and its instants are those planned.
    due_s = [one.due_s for one in records if one.due_s < recorded.started_s + 0.9]
    assert len(due_s) > 5
    planned_s = list(itertools.islice(endless_arrivals_s(20, "7 load-0-0 arrivals"), len(due_s)))
    began_s = due_s[0] - planned_s[0]
    assert due_s == pytest.approx([began_s + at_s for at_s in planned_s], abs=1e-4)
    assert began_s >= recorded.started_s - 1e-4


def test_a_fault_fails_the_run(fake_service: FakeService) -> None:
    fake_service.statuses = itertools.cycle(["failed"])
    run = locust(url_of(fake_service), "--users", "1", "--run-time", "1s", "--user-rps", "20")
    assert run.returncode == 1


# What a worker process tells its master, without waiting for their times.
TOLD_BY_A_WORKER = """
from deploy.loadtest import locustfile
from locust import events

data = {}
locustfile.run.totals.add({"good": 3, "failed": 1})
events.report_to_master.fire(client_id="worker", data=data)
assert not locustfile.run.totals.take()
for _ in range(2):
    events.worker_report.fire(client_id="worker", data=data)
events.worker_report.fire(client_id="worker", data={})
print(locustfile.run.totals.take())
"""


def test_a_master_speaks_for_its_workers() -> None:
    told = subprocess.run(
        [sys.executable, "-c", TOLD_BY_A_WORKER],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "{'good': 6, 'failed': 2}"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--run-time", "1s"], "is not this machine"),
        (["--host-is-mine", "--shape", "spike"], "--shape spike needs --run-time"),
    ],
)
def test_what_cannot_or_may_not_run_is_told_before_anything_is_sent(
    options: list[str], told: str
) -> None:
    run = locust("http://adrel.example", *options)
    assert run.returncode != 0
    assert told in run.stderr
