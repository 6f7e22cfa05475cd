"""The runs of one load test in order, and the document that they make."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from deploy.benchmarks.machine import machine_facts
from deploy.loadtest import load_plan
from deploy.loadtest.load_figures import capacity, failures, fault_pairs, figures_of, timeline
from deploy.loadtest.load_verdict import share_text
from deploy.loadtest.locust_run import LocustFailed, LocustRun
from deploy.loadtest.request_record import RecordedRun, RequestRecord
from deploy.loadtest.target import NoTarget
from deploy.loadtest.user_counts import Shape

REPORT_VERSION = 1

RunLocust = Callable[[LocustRun], RecordedRun]
AskModel = Callable[[], dict[str, str]]
Report = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Loads:
    """What is put on the service.

    Attributes:
        capacity_rps: Requests a second of which the loads are multiples; None to measure it.
        loads: The multiples.
        capacity_s: How long the capacity is measured.
        step_s: How long each load is.
        shape: Of the run that is shown second by second; steady for none.
        timeline_s: How long that is.
    """

    capacity_rps: float | None
    loads: Sequence[float]
    capacity_s: int
    step_s: int
    shape: Shape
    timeline_s: int


class LoadTest:
    """Runs and remembers.

    Attributes:
        models: Name and version of the model that served: before the first run, after those with
            faults, and at the end.
    """

    def __init__(
        self,
        run_locust: RunLocust,
        ask_model: AskModel,
        loads: Loads,
        n_ads: int,
        report: Report,
    ) -> None:
        self.models: list[dict[str, str]] = []
        self._run_locust = run_locust
        self._ask_model = ask_model
        self._loads = loads
        self._n_ads = n_ads
        self._report = report
        self._records: list[RequestRecord] = []
        self._begun = 0
        self._stopped: str | None = None

    def measure(self) -> dict[str, Any]:
        """Run everything: minutes. Less where the service or locust ends before.

        Returns:
            The measured part of `report.json`; `stopped` says why there is no more of it.

        Raises:
            NoTarget: No service answers before the first run.
            LocustFailed: The first run was none, or the service answers nothing.
        """
        self.models.append(self._ask_model())
        found = self._capacity()
        rows, shown = self._rows(found["requests_per_s"])
        if self._stopped is None:
            self._see_whether_it_serves()
        return {
            "capacity": found,
            "steps": rows,
            "timeline": shown,
            "stopped": self._stopped,
            "n_requests": len(self._records),
            "failures": failures(self._records),
            "fault_pairs": fault_pairs(self._records),
        }

    def _rows(self, rate: float) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
        """Figures of the loads, and of the timeline where one is wanted and it comes to that."""
        rows: list[dict[str, Any]] = []
        try:
            for step in self._steps(rate):
                if self._stopped is not None:
                    return rows, None
                rows.append(self._step(step))
            return rows, None if self._stopped is not None else self._timeline(rate)
        except LocustFailed as error:
            if not self._records:
                raise
            self._stopped = str(error)  # what was measured before is worth its page
            return rows, None

    def _capacity(self) -> dict[str, Any]:
        given = self._loads.capacity_rps
        if given is not None:
            pairs = given * self._n_ads
            return {"requests_per_s": given, "pairs_per_s": pairs, "source": "as it was given"}
        run = load_plan.capacity_run(self._loads.capacity_s)
        lasting = _lead_in(run.seconds, self._loads.capacity_s)
        self._tell(f"capacity: {run.users} callers in a closed loop for {lasting}")
        recorded = self._run(run)
        from_s = recorded.started_s + load_plan.CAPACITY_LEAD_S
        rate, pairs = capacity(recorded.requests, from_s, self._loads.capacity_s)
        if not rate:
            seen = ", ".join(failures(recorded.requests)) or "no answer came in time"
            raise LocustFailed(f"the service gave no scores to callers who have time: {seen}")
        self._report(f"      {rate:.1f} requests/s, {pairs:.0f} pairs/s")
        source = f"a closed loop of {run.users} callers"
        return {"requests_per_s": rate, "pairs_per_s": pairs, "source": source}

    def _steps(self, capacity_rps: float) -> list[load_plan.Step]:
        return load_plan.steps(capacity_rps, self._loads.loads, self._loads.step_s)

    def _step(self, step: load_plan.Step) -> dict[str, Any]:
        self._tell(f"{_arrivals(step)} for {_lead_in(step.run.seconds, step.counted_s)}")
        recorded = self._run(step.run)
        # The end of the run's time: what comes after it, until locust notices, is not of it.
        from_s = recorded.started_s + step.run.seconds - step.counted_s
        figures = figures_of(recorded.requests, from_s, step.counted_s)
        p99 = "no answer" if figures["p99_ms"] is None else f"p99 {figures['p99_ms']:.0f} ms"
        self._report(
            f"      {figures['good_pairs_per_s']:.0f} good pairs/s, "
            f"{share_text(figures['shares']['good'])} of those asked for; {p99}"
        )
        return {"load": step.load, "requests_per_s": step.requests_per_s, **figures}

    def _timeline(self, capacity_rps: float) -> dict[str, Any] | None:
        shape = self._loads.shape
        if shape == "steady":
            return None
        step = load_plan.timeline_step(capacity_rps, shape, self._loads.timeline_s)
        self._tell(f"a {shape} to {_arrivals(step)}, {step.run.seconds} s")
        recorded = self._run(step.run)
        peak = step.requests_per_s * self._n_ads
        return {
            "shape": shape,
            "base_pairs_per_s": peak * step.run.base_users / step.run.users,
            "peak_pairs_per_s": peak,
            "rows": timeline(recorded.requests, recorded.started_s, step.counted_s),
        }

    def _run(self, run: LocustRun) -> RecordedRun:
        recorded = self._run_locust(run)
        self._records += recorded.requests
        if fault_pairs(recorded.requests):
            self._see_whether_it_serves()
        return recorded

    def _see_whether_it_serves(self) -> None:
        try:
            self.models.append(self._ask_model())
        except NoTarget as error:
            self._stopped = f"the service has gone: {error}"
            self._report(f"      {self._stopped}")

    def _tell(self, text: str) -> None:
        self._begun += 1
        n_runs = len(self._loads.loads)
        n_runs += (self._loads.capacity_rps is None) + (self._loads.shape != "steady")
        self._report(f"[{self._begun}/{n_runs}] {text}")


def document(
    measured: dict[str, Any],
    models: Sequence[dict[str, str]],
    service: str,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """`report.json`.

    Args:
        measured: As of `LoadTest.measure`.
        models: Name and version of the model that served, in the order in which it was asked.
        service: Where it was, and as what.
        settings: Of the load.
    """
    facts = {
        "model": models[0],
        "service": service,
        "load_generator": machine_facts(("locust",)),
        "command": " ".join(["python -m deploy.loadtest", *sys.argv[1:]]),
        "ended": datetime.datetime.now(tz=datetime.UTC).isoformat(timespec="seconds"),
    }
    versions = list(dict.fromkeys(model["version"] for model in models))
    return {
        "report_version": REPORT_VERSION,
        "facts": facts,
        "settings": settings,
        "model_versions": versions,
        **measured,
    }


def _lead_in(seconds: int, counted_s: int) -> str:
    return f"{counted_s} s after {seconds - counted_s} s of lead-in"


def _arrivals(step: load_plan.Step) -> str:
    return f"{step.load:g} x capacity: {step.requests_per_s:.1f} requests/s at random instants"
