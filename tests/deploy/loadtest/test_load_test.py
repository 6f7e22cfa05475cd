from __future__ import annotations

import json
from typing import Any

import pytest

from deploy.loadtest.load_plan import CAPACITY_LEAD_S
from deploy.loadtest.load_test import Loads, LoadTest, document
from deploy.loadtest.locust_run import LocustFailed, LocustRun
from deploy.loadtest.request_record import RecordedRun
from deploy.loadtest.target import NoTarget
from tests.deploy.loadtest.made_records import PAIRS, record

LOADS = Loads(None, (0.5, 2.0), capacity_s=4, step_s=3, shape="spike", timeline_s=10)


class Service:
    """Takes up to 10 requests in a second, and refuses the others; goes during a run."""

    def __init__(self, goes_in_run: int | None = None) -> None:
        self.runs: list[LocustRun] = []
        self._goes_in_run = goes_in_run

    @property
    def has_gone(self) -> bool:
        return self._goes_in_run is not None and len(self.runs) >= self._goes_in_run

    def model(self) -> dict[str, str]:
        if self.has_gone:
            raise NoTarget("connection refused")
        return {"name": "m", "version": "1"}

    def run(self, run: LocustRun) -> RecordedRun:
        self.runs.append(run)
        per_s = round(run.users * run.user_rps) or 10
        requests = [
            record(1000 + second + i / per_s, fate="good" if i < 10 else "refused")
            for second in range(run.seconds + 1)  # locust is a little late to stop
            for i in range(per_s)
        ]
        if self.has_gone:
            requests += [record(1000 + run.seconds - 1, fate="failed", status=0)]
        return RecordedRun(1000, requests)


def measured(service: Service, loads: Loads = LOADS, said: list[str] | None = None) -> Any:  # noqa: ANN401  # JSON
    report = print if said is None else said.append
    return LoadTest(service.run, service.model, loads, PAIRS, report).measure()


def test_loads_are_multiples_of_what_a_closed_loop_got() -> None:
    service, said = Service(), list[str]()
    report = measured(service, said=said)
    assert report["capacity"]["requests_per_s"] == 10
    assert report["capacity"]["pairs_per_s"] == 10 * PAIRS
    assert [step["requests_per_s"] for step in report["steps"]] == [5, 20]
    assert [step["asked_pairs_per_s"] for step in report["steps"]] == [5 * PAIRS, 20 * PAIRS]
    assert [step["shares"]["good"] for step in report["steps"]] == [1.0, 0.5]
    assert report["stopped"] is None
    assert service.runs[0].seconds == CAPACITY_LEAD_S + 4
    assert [line.split()[0] for line in said if line.startswith("[")] == [
        "[1/4]", "[2/4]", "[3/4]", "[4/4]",
    ]  # fmt: skip


def test_what_is_counted_is_all_that_was_asked() -> None:
    report = measured(Service())
    assert report["n_requests"] == 8 * 10 + 5 * 5 + 5 * 20 + 11 * 20
    assert report["failures"] == {"refused": 5 * 10 + 11 * 10}
    assert len(report["timeline"]["rows"]) == 10


def test_the_seconds_that_are_told_are_those_that_were_asked_for() -> None:
    said = list[str]()
    measured(Service(), said=said)
    capacity, low, *_ = (line for line in said if line.startswith("["))
    assert capacity.endswith("for 4 s after 3 s of lead-in")
    assert low.endswith("for 3 s after 1 s of lead-in")


def test_a_capacity_that_is_given_is_not_measured() -> None:
    service = Service()
    loads = Loads(8.0, (1.0,), capacity_s=4, step_s=3, shape="steady", timeline_s=10)
    report = measured(service, loads)
    assert len(service.runs) == 1
    assert report["capacity"]["pairs_per_s"] == 8 * PAIRS
    assert report["timeline"] is None


def test_a_service_without_answers_ends_the_test() -> None:
    silent = RecordedRun(0, [record(0, fate="failed")])
    test = LoadTest(lambda _: silent, Service().model, LOADS, PAIRS, print)
    with pytest.raises(LocustFailed, match="gave no scores to callers who have time: failed"):
        test.measure()


@pytest.mark.parametrize(("goes_in_run", "n_steps"), [(1, 0), (2, 1), (3, 2)])
def test_a_service_that_goes_ends_the_test_and_keeps_what_was_measured(
    goes_in_run: int, n_steps: int
) -> None:
    service = Service(goes_in_run)
    report = measured(service)
    assert len(service.runs) == goes_in_run
    assert len(report["steps"]) == n_steps
    assert report["timeline"] is None
    assert report["failures"]["failed"] == 1
    assert report["stopped"] == "the service has gone: connection refused"


def test_a_service_that_goes_after_the_last_run_is_told_too() -> None:
    service = Service(goes_in_run=4)
    report = measured(service)
    assert report["timeline"] is not None
    assert report["stopped"] == "the service has gone: connection refused"


def test_a_run_that_fails_leaves_what_was_measured_before() -> None:
    service = Service()

    def run(run: LocustRun) -> RecordedRun:
        if len(service.runs) == 2:
            raise LocustFailed("locust did not end within 60 s")
        return service.run(run)

    report = LoadTest(run, service.model, LOADS, PAIRS, print).measure()
    assert len(report["steps"]) == 1
    assert report["stopped"] == "locust did not end within 60 s"


def test_no_service_before_the_first_run_is_no_load_test() -> None:
    with pytest.raises(NoTarget):
        measured(Service(goes_in_run=0))


def test_the_document_can_be_stored() -> None:
    models = [{"name": "m", "version": "1"}] * 2
    report = document(measured(Service()), models, "here", {"patience_ms": 155.0})
    assert report["model_versions"] == ["1"]
    assert report["facts"]["load_generator"]["locust"]
    assert json.loads(json.dumps(report, allow_nan=False))["steps"] == report["steps"]
