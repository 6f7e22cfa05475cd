"""Several worker processes on one port: killed, hung, reloaded, stopped, orphaned."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from service.cpu import usable_cores
from tests.bundle_variants import damage, link, of_another_version
from tests.end_to_end.running_service import EACH_ITS_OWN, RunningService, running
from tests.end_to_end.test_reload import Load
from tests.end_to_end.test_serving import long_ads, start_fails
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="two workers need two cores")

OK = 'adrel_requests_total{outcome="ok",route="/v1/score"}'
WORKERS = "adrel_worker_processes"


def restarts(reason: str) -> str:
    return f'adrel_worker_restarts_total{{reason="{reason}"}}'


def pid_of(service: RunningService, worker: int) -> int:
    """Of the process that has the number now."""
    starts = [entry for entry in service.log if entry["message"] == "a worker serves"]
    return int([entry["pid"] for entry in starts if entry["worker"] == worker][-1])


def gone(pid: int) -> bool:
    """Ended, whether its parent has looked or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("Z")
    except FileNotFoundError:
        return True


def stands_still(pid: int) -> bool:
    """Every thread of it is stopped."""
    try:
        stats = [(one / "stat").read_text() for one in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:  # a thread ended meanwhile
        return False
    return all(stat.rpartition(") ")[2].startswith("T") for stat in stats)


@dataclass
class HealthChecks:
    """A hundred a second, each on a connection of its own as orchestrators make them."""

    url: str
    statuses: list[int] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)
    between: threading.Lock = field(default_factory=threading.Lock)

    def run(self) -> None:
        with httpx.Client(base_url=self.url, timeout=5, limits=EACH_ITS_OWN) as client:
            while not self.stopped.wait(0.01):
                with self.between:
                    self.statuses.append(client.get("/readyz").status_code)


@contextmanager
def checked(service: RunningService) -> Iterator[HealthChecks]:
    checks = HealthChecks(service.url)
    with ThreadPoolExecutor(1) as executor:
        running_checks = executor.submit(checks.run)
        try:
            yield checks
        finally:
            checks.stopped.set()
        running_checks.result()
    assert checks.statuses
    assert set(checks.statuses) == {200}


@pytest.fixture(scope="module")
def live(tiny_bundle_int8: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A link to the bundle that the operator serves."""
    at = tmp_path_factory.mktemp("live") / "live"
    link(tiny_bundle_int8, at)
    return at


@pytest.fixture(scope="module")
def service(live: Path) -> Iterator[RunningService]:
    arguments = ("--workers", "2", "--admin-port", "0", "--worker-timeout-s", "2")
    with running(live, *arguments) as started:
        url = admin_urls(started)
        # A connection that is kept belongs to one worker, and dies with it.
        with httpx.Client(base_url=url, timeout=60, limits=EACH_ITS_OWN) as admin:
            started.client.close()
            both = RunningService(started.process, started.url, admin, started.log)
            both.reaches(WORKERS, lambda n_workers: n_workers == 2)
            yield both


def admin_urls(started: RunningService) -> str:
    """The one admin port, which each worker tells."""
    (url,) = {
        entry["url"] for entry in started.log if entry["message"] == "listening for operators"
    }
    return str(url)


def test_a_killed_worker_is_replaced_and_no_health_check_fails_and_no_count_goes_backwards(
    service: RunningService,
) -> None:
    died = service.metric(restarts("died"))
    load, counts = Load(service), []

    def repaired() -> bool:
        counts.append(service.metric(OK))
        return pid_of(service, 1) != victim

    with checked(service) as checks, ThreadPoolExecutor(2) as executor:
        callers = [executor.submit(load.call, seed) for seed in range(2)]
        try:
            counts.append(service.metric(OK))
            until(lambda: len(load.answers) > 20)
            counts.append(service.metric(OK))
            victim = pid_of(service, 1)
            with checks.between:
                os.kill(victim, signal.SIGKILL)
                until(lambda: gone(victim))
            until(repaired)
            service.reaches(WORKERS, lambda n_workers: n_workers == 2)
            counts.append(service.metric(OK))
        finally:  # also where something is wrong: the executor waits for them
            load.stopped.set()
        failed = [caller.exception() for caller in callers]
    # A caller whose connection the victim had is cut off, as by any server that dies.
    assert {type(error) for error in failed} <= {
        type(None), httpx.ReadError, httpx.RemoteProtocolError, httpx.WriteError
    }  # fmt: skip
    assert counts == sorted(counts)
    assert counts[1] > counts[0]
    assert service.metric(restarts("died")) == died + 1


def test_a_worker_that_hangs_is_replaced_and_no_health_check_fails(
    service: RunningService,
) -> None:
    hung = service.metric(restarts("hung"))
    victim = pid_of(service, 2)
    with checked(service) as checks:
        with checks.between:
            os.kill(victim, signal.SIGSTOP)
            until(lambda: Path(f"/proc/{victim}/stat").read_text().rpartition(") ")[2][0] == "T")
        until(lambda: gone(victim))
        until(lambda: pid_of(service, 2) != victim)
    service.reaches(WORKERS, lambda n_workers: n_workers == 2)
    assert service.metric(restarts("hung")) == hung + 1


def versions(service: RunningService) -> set[str]:
    """That workers serve now."""
    exposed = service.client.get("/metrics").text.splitlines()
    return {
        line.partition('version="')[2].partition('"')[0]
        for line in exposed
        if line.startswith("adrel_model_info{")
    }


def test_a_reload_reaches_every_worker_or_none(
    service: RunningService, live: Path, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    (before,) = versions(service)
    other = of_another_version(tiny_bundle_int8, tmp_path / "other")
    spoiled = of_another_version(tiny_bundle_int8, tmp_path / "spoiled", 0.4)
    damage(spoiled)
    link(spoiled, live)
    refused = service.client.post("/admin/reload")
    assert refused.status_code == 422
    assert "model.onnx has sha256" in refused.json()["error"]["message"]
    assert versions(service) == {before}
    link(other, live)
    answer = service.client.post("/admin/reload").json()
    assert answer["result"] == "changed"
    told = [(one["worker"], one["result"], one["version"]) for one in answer["workers"]]
    after = answer["serving"]["version"]
    assert told == [(1, "changed", after), (2, "changed", after)]
    assert versions(service) == {after}
    link(tiny_bundle_int8, live)
    service.process.send_signal(signal.SIGHUP)
    until(lambda: versions(service) == {before})


def test_a_worker_in_anothers_place_serves_what_the_others_do_not_what_was_put_there_since(
    service: RunningService, live: Path, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    (before,) = versions(service)
    link(of_another_version(tiny_bundle_int8, tmp_path / "later", 0.3), live)
    victim = pid_of(service, 2)
    os.kill(victim, signal.SIGKILL)
    until(lambda: pid_of(service, 2) != victim)
    service.reaches(WORKERS, lambda n_workers: n_workers == 2)
    assert versions(service) == {before}
    link(tiny_bundle_int8, live)


def test_log_lines_say_which_worker_wrote_them(service: RunningService) -> None:
    listening = [entry for entry in service.log if entry["message"] == "listening"]
    assert {entry["worker"] for entry in listening} == {1, 2}


def test_the_settings_are_logged_once_for_all_workers(service: RunningService) -> None:
    (shown,) = [entry["settings"] for entry in service.log if "settings" in entry]
    assert shown["workers"] == 2


N_CALLERS = 6
N_ADS = 600


@contextmanager
def answers_under_way(started: RunningService) -> Iterator[None]:
    """Requests that take a while, on as many connections, so that both workers have some."""

    def ask(number: int) -> int:
        body = {"query": f"red {number}", "ads": long_ads(N_ADS)}
        return client.post("/v1/score", json=body).status_code

    with (
        httpx.Client(base_url=started.url, timeout=120, limits=EACH_ITS_OWN) as client,
        ThreadPoolExecutor(N_CALLERS) as executor,
    ):
        asked = [executor.submit(ask, number) for number in range(N_CALLERS)]
        # So many only when all of them are accepted.
        started.reaches("adrel_queue_pairs", lambda n_pairs: n_pairs > (N_CALLERS - 1) * N_ADS)
        yield
        assert [one.result() for one in asked] == [200] * N_CALLERS


def workers_of(started: RunningService) -> list[int]:
    started.reaches(WORKERS, lambda n_workers: n_workers == 2)
    return [pid_of(started, 1), pid_of(started, 2)]


SLOW = ("--workers", "2", "--max-batch-pairs", "1", "--cache-bytes", "0", "--max-queue-ms",
        "120000", "--default-timeout-ms", "60000", "--drain-timeout-s", "60")  # fmt: skip


def test_a_stop_signal_lets_every_worker_finish_and_exits_zero(tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, *SLOW) as stopping:
        pids = workers_of(stopping)
        with answers_under_way(stopping):
            stopping.process.send_signal(signal.SIGTERM)
        assert stopping.process.wait(timeout=DEADLINE_S) == 0
        assert all(gone(pid) for pid in pids)
        assert not [entry for entry in stopping.log if entry["level"] == "error"]


def test_workers_whose_supervisor_is_killed_finish_and_end(tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8, *SLOW) as orphaned:
        pids = workers_of(orphaned)
        with answers_under_way(orphaned):
            orphaned.process.kill()
        until(lambda: all(gone(pid) for pid in pids))


def test_what_is_left_when_all_processes_are_killed_at_once_goes_with_the_next_start(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    with running(tiny_bundle_int8, "--workers", "2", TMPDIR=str(tmp_path)) as killed:
        pids = [killed.process.pid, *workers_of(killed)]
        for pid in pids:  # so that none of them sees another one go
            os.kill(pid, signal.SIGSTOP)
            until(lambda pid=pid: stands_still(pid))  # type: ignore[misc]  # bound in this turn
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        until(lambda: all(gone(pid) for pid in pids))
    assert [entry for entry in killed.log if entry["level"] == "error"] == []
    (left,) = tmp_path.iterdir()
    assert list(left.glob("graphs/*/*"))
    with running(tiny_bundle_int8, "--workers", "2", TMPDIR=str(tmp_path)) as started:
        (own,) = tmp_path.iterdir()
        assert own != left
        workers_of(started)
    assert list(tmp_path.iterdir()) == []


def test_a_start_that_cannot_work_ends_with_one_line_whatever_the_number_of_workers(
    tmp_path: Path,
) -> None:
    assert "no bundle at" in start_fails("--bundle", str(tmp_path), "--port", "0", "--workers", "2")
    assert "workers: is 4096, over the limit of" in start_fails("--workers", "4096")
