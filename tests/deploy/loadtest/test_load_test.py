from __future__ import annotations

import json

import pytest

from deploy.loadtest.load_plan import CAPACITY_LEAD_S
from deploy.loadtest.load_test import Loads, LoadTest, document
from deploy.loadtest.locust_run import LocustFailed, LocustRun
from deploy.loadtest.request_record import RecordedRun
from tests.deploy.loadtest.made_records import PAIRS, record

LOADS = Loads(None, (0.5, 2.0), capacity_s=4, step_s=3, shape="spike", timeline_s=10)


class Service:
    """Takes up to 10 requests in a second, and refuses the others."""

    def __init__(self) -> None:
        self.runs: list[LocustRun] = []

    def run(self, run: LocustRun) -> RecordedRun:
        self.runs.append(run)
        per_s = round(run.users * run.user_rps) or 10
        requests = [
            record(1000 + second + i / per_s, fate="good" if i < 10 else "refused")
            for second in range(run.seconds + 1)  # locust is a little late to stop
            for i in range(per_s)
        ]
        return RecordedRun(1000, requests)


def test_loads_are_multiples_of_what_a_closed_loop_got() -> None:
    service, said = Service(), list[str]()
    measured = LoadTest(service.run, LOADS, PAIRS, said.append).measure()
    assert measured["capacity"]["requests_per_s"] == 10
    assert measured["capacity"]["pairs_per_s"] == 10 * PAIRS
    assert [step["requests_per_s"] for step in measured["steps"]] == [5, 20]
    assert [step["asked_pairs_per_s"] for step in measured["steps"]] == [5 * PAIRS, 20 * PAIRS]
    assert [step["shares"]["good"] for step in measured["steps"]] == [1.0, 0.5]
    assert service.runs[0].seconds == CAPACITY_LEAD_S + 4
    assert [line.split()[0] for line in said if line.startswith("[")] == [
        "[1/4]", "[2/4]", "[3/4]", "[4/4]",
    ]  # fmt: skip


def test_what_is_counted_is_all_that_was_asked() -> None:
    measured = LoadTest(Service().run, LOADS, PAIRS, lambda _: None).measure()
    assert measured["n_requests"] == 8 * 10 + 5 * 5 + 5 * 20 + 11 * 20
    assert measured["failures"] == {"refused": 5 * 10 + 11 * 10}
    assert len(measured["timeline"]["rows"]) == 10


def test_a_capacity_that_is_given_is_not_measured() -> None:
    service = Service()
    loads = Loads(8.0, (1.0,), capacity_s=4, step_s=3, shape="steady", timeline_s=10)
    measured = LoadTest(service.run, loads, PAIRS, lambda _: None).measure()
    assert len(service.runs) == 1
    assert measured["capacity"]["pairs_per_s"] == 8 * PAIRS
    assert measured["timeline"] is None


def test_a_service_without_answers_ends_the_test() -> None:
    test = LoadTest(
        lambda _: RecordedRun(0, [record(0, fate="failed")]), LOADS, PAIRS, lambda _: None
    )
    with pytest.raises(LocustFailed, match="gave no scores to callers who have time: failed"):
        test.measure()


def test_the_document_can_be_stored() -> None:
    measured = LoadTest(Service().run, LOADS, PAIRS, lambda _: None).measure()
    models = [{"name": "m", "version": "1"}] * 2
    report = document(measured, models, "here", {"patience_ms": 155.0})
    assert report["model_versions"] == ["1"]
    assert report["facts"]["load_generator"]["locust"]
    assert json.loads(json.dumps(report, allow_nan=False))["steps"] == report["steps"]
