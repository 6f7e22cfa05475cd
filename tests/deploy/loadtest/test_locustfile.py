from __future__ import annotations

import json
import random
import statistics
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from deploy.loadtest.ad_traffic import ADS_PER_TOPIC, AdTraffic
from deploy.loadtest.answer_verdict import judge
from deploy.loadtest.goodput import GoodputTotals
from service.api.schemas import ScoreRequest
from service.settings import Settings
from tests.deploy.repository import DEPLOY, ROOT

TRAFFIC = AdTraffic()


def bodies(n_bodies: int, n_ads: int = 20, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)  # noqa: S311
    return [TRAFFIC.request_body(rng, n_ads, 50.0, f"load-{i}") for i in range(n_bodies)]


def answer(*statuses: str) -> bytes:
    return json.dumps({"scores": [{"id": "a", "status": status} for status in statuses]}).encode()


def test_every_body_is_one_that_the_service_takes() -> None:
    for body in [*bodies(200), *bodies(3, n_ads=1), *bodies(3, n_ads=ADS_PER_TOPIC)]:
        parsed = ScoreRequest.model_validate_json(json.dumps(body))
        assert parsed.timeout_ms == 50
        assert len({ad.id for ad in parsed.ads}) == len(body["ads"])


def test_as_many_ads_as_can_be_asked_for_fit_a_request() -> None:
    assert Settings.model_fields["max_ads_per_request"].default >= ADS_PER_TOPIC


def test_the_same_seed_asks_the_same() -> None:
    assert bodies(20, seed=5) == bodies(20, seed=5)
    assert bodies(20, seed=5) != bodies(20, seed=6)


def test_a_few_queries_come_all_the_time_and_most_hardly_ever() -> None:
    counts = Counter(body["query"] for body in bodies(2000, n_ads=1)).most_common()
    assert counts[0][1] > 2000 / 10
    assert len(counts) > 200
    assert statistics.median(n for _, n in counts) <= 3


def test_texts_are_as_long_as_those_of_ads() -> None:
    words = [
        len(f"{body['query']} {ad['title']} {ad.get('description', '')}".split())
        for body in bodies(200)
        for ad in body["ads"]
    ]
    # A word is about 1.3 tokens, and a pair has 3 special ones: 12-36 tokens on average.
    assert 12 < statistics.mean(words) * 1.3 + 3 < 36
    assert max(words) > 2 * min(words)


def test_an_answer_with_every_score_in_time_is_a_success() -> None:
    verdict = judge(200, answer("ok", "ok"), elapsed_ms=49, patience_ms=50, n_ads=2)
    assert verdict.failure is None
    assert verdict.pairs["good"] == 2


def test_a_partial_answer_is_a_failure_with_some_good_pairs() -> None:
    verdict = judge(200, answer("ok", "deadline", "failed"), 49, 50, n_ads=3)
    assert verdict.failure == "partial: some ads have no score"
    assert +verdict.pairs == Counter({"good": 1, "deadline": 1, "failed": 1})


def test_scores_that_come_too_late_are_worth_nothing() -> None:
    verdict = judge(200, answer("ok", "deadline"), elapsed_ms=51, patience_ms=50, n_ads=2)
    assert verdict.failure is not None
    assert verdict.failure.startswith("late")
    assert +verdict.pairs == Counter({"late": 1, "deadline": 1})


@pytest.mark.parametrize(
    ("status", "code", "fate"),
    [
        (504, "deadline_exceeded", "deadline"),
        (429, "queue_full", "refused"),
        (503, "not_ready", "refused"),
        (500, "inference_failed", "failed"),
    ],
)
def test_an_error_is_filed_under_its_status_and_code(status: int, code: str, fate: str) -> None:
    verdict = judge(status, json.dumps({"error": {"code": code}}).encode(), 5, 50, n_ads=20)
    assert verdict.failure == f"{status} {code}"
    assert verdict.pairs == {fate: 20}


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"scores": 3}', answer("ok")])
def test_an_answer_that_is_none_is_a_failure(body: bytes) -> None:
    verdict = judge(200, body, 5, 50, n_ads=2)
    assert verdict.failure == "malformed answer"
    assert verdict.pairs == {"failed": 2}


def test_no_answer_at_all_is_a_failure() -> None:
    verdict = judge(0, b"", 5, 50, n_ads=2)
    assert verdict.failure == "0 no answer of the service"
    assert verdict.pairs == {"failed": 2}


def test_totals_of_several_processes_add_up() -> None:
    master, workers = GoodputTotals(), [GoodputTotals(), GoodputTotals()]
    for worker in workers:
        worker.add({"good": 15, "deadline": 5})
        master.merge(worker.take())
        master.merge(worker.take())  # nothing new
    assert "40 pairs asked for, 15 good pairs/s" in master.summary(duration_s=2)
    assert "good 30 (75.00%), deadline 10 (25.00%)" in master.summary(duration_s=2)


def test_a_run_with_no_answer_has_a_summary() -> None:
    assert GoodputTotals().summary(0).startswith("goodput: 0 pairs asked for\n")


class FakeService:
    """Answers every second request in full and the others partially."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.connections: set[Any] = set()
        service = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"  # keep-alive

            def do_POST(self) -> None:  # http.server's name
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.bodies.append(body)
                service.connections.add(self.client_address)
                status = "deadline" if len(service.bodies) % 2 else "ok"
                content = answer("ok", *[status] * (len(body["ads"]) - 1))
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True  # of connections that locust leaves open


@pytest.fixture
def fake_service() -> Iterator[FakeService]:
    service = FakeService()
    thread = threading.Thread(target=service.server.serve_forever)
    thread.start()
    yield service
    service.server.shutdown()
    service.server.server_close()
    thread.join()


def test_locust_runs_the_users_and_counts_goodput(fake_service: FakeService) -> None:
    # A process of its own: locust patches the standard library for gevent.
    command = [
        *(sys.executable, "-m", "locust", "-f", str(DEPLOY / "loadtest" / "locustfile.py")),
        *("--headless", "--users", "2", "--spawn-rate", "2", "--run-time", "1s"),
        *("--stop-timeout", "10"),  # what was asked is answered before it counts
        *("--host", f"http://127.0.0.1:{fake_service.server.server_port}"),
        *("--ads", "4", "--timeout-ms", "5000", "--user-rps", "10", "--only-summary"),
    ]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    n_bodies = len(fake_service.bodies)
    assert n_bodies >= 4, run.stderr
    assert len(fake_service.connections) == 2  # one for each user, kept
    for body in fake_service.bodies:
        parsed = ScoreRequest.model_validate(body)
        assert len(parsed.ads) == 4
        assert parsed.timeout_ms == 5000
    assert "partial: some ads have no score" in run.stderr
    assert f"goodput: {4 * n_bodies} pairs asked for" in run.stdout
    assert run.returncode == 1  # locust's way to say that requests failed
