"""A bundle's folder is replaced, and before a reload a worker starts in another's place."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from service.cpu import usable_cores
from tests.bundle_variants import damage, of_another_version
from tests.end_to_end.running_service import EACH_ITS_OWN, RunningService, running
from tests.end_to_end.test_workers import WORKERS, admin_urls, pid_of, versions
from tests.waiting import until

pytestmark = pytest.mark.skipif(usable_cores() < 2, reason="two workers need two cores")


@pytest.fixture(scope="module")
def live(tiny_bundle_int8: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the operator serves, no link."""
    return shutil.copytree(tiny_bundle_int8, tmp_path_factory.mktemp("operators") / "live")


@pytest.fixture(scope="module")
def service(live: Path) -> Iterator[RunningService]:
    with (
        running(live, "--workers", "2", "--admin-port", "0") as started,
        httpx.Client(base_url=admin_urls(started), timeout=60, limits=EACH_ITS_OWN) as admin,
    ):
        both = RunningService(started.process, started.url, admin, started.log, started.plain_lines)
        both.reaches(WORKERS, lambda n_workers: n_workers == 2)
        yield both


def is_back(service: RunningService, worker: int, killed_pid: int) -> None:
    until(lambda: pid_of(service, worker) != killed_pid)
    service.reaches(WORKERS, lambda n_workers: n_workers == 2)


def renamed(live: Path, new: Path) -> None:
    live.rename(new.with_name("old"))
    shutil.copytree(new, live)


def deleted(live: Path, _: Path) -> None:
    shutil.rmtree(live)


def damaged(live: Path, new: Path) -> None:
    renamed(live, new)
    damage(live)


@pytest.mark.parametrize(
    ("replaced", "tolerance"),  # one that makes a version: what serves is of the case before
    [(renamed, 0.41), (deleted, 0.42), (damaged, 0.43)],
)
def test_a_worker_comes_back_with_what_the_others_serve_and_a_reload_brings_the_new_one_to_all(
    replaced: Callable[[Path, Path], None],
    tolerance: float,
    service: RunningService,
    live: Path,
    tmp_path: Path,
) -> None:
    (before,) = versions(service)
    new = of_another_version(live, tmp_path / "new", tolerance)
    replaced(live, new)
    victim = pid_of(service, 2)
    os.kill(victim, signal.SIGKILL)
    is_back(service, 2, victim)
    assert versions(service) == {before}
    if live.exists():
        shutil.rmtree(live)
    new.rename(live)
    answer = service.client.post("/admin/reload").json()
    after = answer["serving"]["version"]
    assert after != before
    assert [one["result"] for one in answer["workers"]] == ["changed", "changed"]
    assert versions(service) == {after}
    assert answer["serving"]["bundle"] == "live"


def test_a_reload_of_a_folder_that_is_gone_names_it_and_changes_nothing(
    service: RunningService, live: Path
) -> None:
    (before,) = versions(service)
    live.rename(live.with_name("aside"))
    refused = service.client.post("/admin/reload")
    live.with_name("aside").rename(live)
    assert refused.status_code == 422
    assert f"no bundle at {live}:" in refused.json()["error"]["message"]
    assert versions(service) == {before}


def test_what_was_overwritten_in_place_is_told_of_and_not_served_until_a_reload(
    service: RunningService, live: Path, tmp_path: Path
) -> None:
    (before,) = versions(service)
    new = of_another_version(live, tmp_path / "new", 0.44)
    damage(live)  # the very file that all of them have
    shutil.copyfile(new / "manifest.json", live / "manifest.json")
    victim = pid_of(service, 1)  # the canary of a reload, where it serves
    os.kill(victim, signal.SIGKILL)
    until(lambda: any("model.onnx has sha256" in line for line in service.plain_lines))
    assert versions(service) == {before}
    shutil.rmtree(live)
    new.rename(live)
    after = service.client.post("/admin/reload").json()["serving"]["version"]
    is_back(service, 1, victim)
    assert versions(service) == {after}
