"""Disks, pipes and clocks that fail under a running service: it goes on, and says so."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import httpx
import pytest

from tests.bundle_variants import of_another_version
from tests.end_to_end.running_service import ROOT, RunningService, environment, running
from tests.end_to_end.test_serving import ads
from tests.waiting import until

DEADLINE_S = 30
BODY = {"query": "red", "ads": ads("shoe", "bag")}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


@contextmanager
def unheard(
    bundle: Path, stderr: int | IO[bytes], before: Sequence[str] = ()
) -> Iterator[tuple[RunningService, IO[bytes] | None]]:
    """A service whose log nobody can be sure to read; with the pipe, where `stderr` makes one."""
    port = free_port()
    command = [*before, sys.executable, "-m", "service", "--bundle", str(bundle), "--log-requests"]
    with subprocess.Popen(
        [*command, "--port", str(port)], cwd=ROOT, env=environment(), stderr=stderr
    ) as process:
        url = f"http://127.0.0.1:{port}"
        try:
            with httpx.Client(base_url=url, timeout=DEADLINE_S) as client:
                until(lambda: process.poll() is not None or is_ready(client), "it never was ready")
                assert process.poll() is None, "it ended"
                yield RunningService(process, url, client), process.stderr  # type: ignore[arg-type]  # bytes are not read
        finally:
            process.kill()


def ends_well(service: RunningService) -> None:
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(DEADLINE_S) == 0


def test_a_full_disk_costs_log_lines_and_no_answer(tiny_bundle_int8: Path) -> None:
    with Path("/dev/full").open("wb") as full, unheard(tiny_bundle_int8, full) as (service, _):
        assert service.score(BODY).status_code == 200
        assert service.score({"query": "shoe"}).status_code == 422
        service.reaches("adrel_log_lines_lost_total", lambda lost: lost >= 3)
        service.process.send_signal(signal.SIGHUP)
        service.reaches('adrel_reloads_total{result="unchanged"}', lambda n: n == 1)
        ends_well(service)


def test_a_reader_of_the_log_that_has_gone_costs_log_lines_and_no_answer(
    tiny_bundle_int8: Path,
) -> None:
    with unheard(tiny_bundle_int8, subprocess.PIPE) as (service, pipe):
        assert pipe is not None
        pipe.close()
        for _ in range(3):
            assert service.score(BODY).status_code == 200
        service.reaches("adrel_log_lines_lost_total", lambda lost: lost >= 3)
        ends_well(service)


def alone_in_a_namespace(commands: str) -> list[str]:
    """What runs its arguments after some commands that only they can see the effects of."""
    prefix = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-ec"]
    if (
        shutil.which("unshare") is None
        or subprocess.run([*prefix, commands], check=False).returncode
    ):
        pytest.skip("needs a mount namespace")
    return [*prefix, f'{commands}; exec "$@"', "sh"]


def test_it_serves_and_reloads_where_nothing_can_be_written(tiny_bundle_int8: Path) -> None:
    read_only = alone_in_a_namespace("mount -o remount,ro,bind /")
    with unheard(tiny_bundle_int8, subprocess.DEVNULL, read_only) as (service, _):
        with pytest.raises(OSError, match="Read-only"):
            Path(f"/proc/{service.process.pid}/root/written").touch()
        assert service.score(BODY).status_code == 200
        service.process.send_signal(signal.SIGHUP)
        service.reaches('adrel_reloads_total{result="unchanged"}', lambda n: n == 1)
        ends_well(service)


def test_a_log_on_a_full_disk_goes_on_when_there_is_room_and_says_what_is_missing(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    small = alone_in_a_namespace(f"mount -t tmpfs -o size=64k none {tmp_path}")
    to_file = ["sh", "-c", 'file=$1; shift; exec "$@" 2>>"$file"', "sh", str(tmp_path / "log")]
    with unheard(tiny_bundle_int8, subprocess.DEVNULL, [*small, *to_file]) as (service, _):
        inside = Path(f"/proc/{service.process.pid}/root{tmp_path}")
        ballast = inside / "ballast"
        with pytest.raises(OSError, match="No space"):
            ballast.write_bytes(b"x" * 2**17)
        for _ in range(50):
            assert service.score(BODY).status_code == 200
        service.reaches("adrel_log_lines_lost_total", lambda lost: lost > 0)
        ballast.unlink()
        assert service.score(BODY).status_code == 200
        until(lambda: "log lines were lost" in (inside / "log").read_text())
        ends_well(service)


def test_a_bundle_that_vanishes_is_missed_by_a_reload_alone(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    bundle = Path(shutil.copytree(tiny_bundle_int8, tmp_path / "bundle"))
    with running(bundle, "--cache-bytes", "0") as service:
        before = service.score(BODY).json()
        for file in bundle.iterdir():
            os.truncate(file, 0)  # also under what might be mapped into memory
        shutil.rmtree(bundle)
        assert service.score(BODY).json()["scores"] == before["scores"]
        service.process.send_signal(signal.SIGHUP)
        service.reaches('adrel_reloads_total{result="failed"}', lambda n: n == 1)
        assert any("no bundle at" in str(entry.get("why")) for entry in service.log)
        assert service.score(BODY).json()["scores"] == before["scores"]
        other = of_another_version(tiny_bundle_int8, bundle)
        service.process.send_signal(signal.SIGHUP)
        service.reaches('adrel_reloads_total{result="changed"}', lambda n: n == 1)
        assert other.exists()
        assert service.client.get("/livez").status_code == 200


def test_a_wall_clock_that_jumps_by_days_changes_no_deadline_and_no_watchdog(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    file = tmp_path / "fault"
    program = ("deploy.faults.faulty_service", "--fault-file", str(file))
    arguments = ("--cache-bytes", "0", "--watchdog-s", "1", "--inference-threads", "1")
    with running(tiny_bundle_int8, *arguments, program=program) as service:
        file.write_text("clock 1000000")
        dates = set()
        for _ in range(30):
            answer = service.score({**BODY, "timeout_ms": 20_000})
            assert answer.status_code == 200
            assert 0 <= answer.json()["timing_ms"]["total"] < 20_000
            time.sleep(0.05)
            dates.add(answer.headers["date"][:16])
        assert len(dates) > 1, "the clock never jumped"
        assert service.client.get("/livez").status_code == 200
        assert not [entry for entry in service.log if entry["level"] == "error"]
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(DEADLINE_S) == 0


def test_of_two_that_start_at_once_on_one_port_one_serves_and_the_other_says_why_not(
    tiny_bundle_int8: Path,
) -> None:
    port = str(free_port())
    command = [sys.executable, "-m", "service", "--bundle", str(tiny_bundle_int8), "--port", port]
    several = [*command, "--workers", "2"]
    both = [
        subprocess.Popen(each, cwd=ROOT, env=environment(), stderr=subprocess.PIPE, text=True)
        for each in (command, several)
    ]
    try:
        until(lambda: any(one.poll() is not None for one in both), "both serve")
        (ended,) = [one for one in both if one.poll() is not None]
        _, told = ended.communicate(timeout=DEADLINE_S)
        assert ended.returncode == 1
        plain = [line for line in told.splitlines() if not line.startswith("{")]
        assert plain == [f"adrel: cannot listen on 127.0.0.1:{port}: Address already in use"]
        assert '"ready"' not in told
    finally:
        for one in both:
            one.terminate()
            one.communicate(timeout=DEADLINE_S)
