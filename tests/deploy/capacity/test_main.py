from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys

import pytest

from deploy.capacity import measured
from deploy.capacity.__main__ import main
from tests.deploy.repository import DEPLOY, ROOT

PAGE = (DEPLOY / "capacity" / "README.md").read_text(encoding="utf-8")
USUAL = "--auctions-per-s 500 --ads 20 --timeout-ms 100 --hit-share 0.6"


def printed(capsys: pytest.CaptureFixture[str], arguments: str) -> str:
    assert main(shlex.split(arguments)) == 0
    return capsys.readouterr().out


def test_the_plan_is_told_with_its_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(capsys, USUAL)
    assert re.match(r"\d+ pods of \d cores, \d+ in each of 3 zones: \d+ cores\n", told)
    for reason in (
        "none cached",
        "network",
        "99 % on time",
        "60% of the pairs",
        "adrel_queue_seconds",
    ):
        assert reason in told


def test_a_single_zone_is_not_told_of_its_loss(capsys: pytest.CaptureFixture[str]) -> None:
    assert "zone" not in printed(capsys, USUAL + " --zones 1")


def test_one_of_a_kind_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(
        capsys, "--auctions-per-s 1 --ads 1 --timeout-ms 500 --zones 1 --cores-per-pod 1"
    )
    assert told.startswith("1 pod of 1 core: 1 core\n\nAn auction of 1 ad, ")
    assert not re.search(r"\b1 \w+s\b(?! a pod)", told.replace("auctions/s", ""))


def test_a_reader_that_has_gone_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "deploy.capacity", *shlex.split(USUAL)]
    with os.fdopen(write, "w") as closed:
        run = subprocess.run(
            command, stdout=closed, stderr=subprocess.PIPE, cwd=ROOT, check=False, timeout=60
        )
    assert (run.returncode, run.stderr) == (0, b"")


def test_no_fleet_is_an_error_that_says_what_would_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split("--auctions-per-s 500 --ads 20 --timeout-ms 5")) == 1
    assert "capacity: timeout_ms: is 5" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (USUAL + " --hit-share 1.5", "hit_share: takes a share from 0 to 1, got 1.5"),
        (USUAL + " --ads 0", "ads: takes a whole number from 1 to 1,000"),
        (USUAL + " --zones two", "--zones"),
        ("--ads 20 --timeout-ms 100", "--auctions-per-s"),
    ],
)
def test_wrong_options_are_named(
    capsys: pytest.CaptureFixture[str], arguments: str, problem: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(shlex.split(arguments))
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


def test_the_page_shows_what_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    [(arguments, shown)] = re.findall(
        r"```\n\$ \.venv/bin/python -m deploy\.capacity ([^\n]*)\n(.*?)```", PAGE, re.DOTALL
    )
    assert printed(capsys, arguments) == shown


def figures(page: str, pattern: str) -> list[float]:
    [found] = re.findall(pattern, page)
    return [float(figure.replace(",", "")) for figure in found]


def test_the_page_rests_on_the_measured_figures() -> None:
    at_saturation = figures(PAGE, r"([\d,]+) pairs/s over HTTP .*ONNX Runtime alone: ([\d,]+)\)")
    assert at_saturation == [measured.PAIRS_PER_S, measured.BARE_PAIRS_PER_S]
    idle = figures(PAGE, r"([\d.]+) ms for an idle request of (\d+) ads, ([\d.]+) ms of it")
    assert idle == [measured.IDLE_MS, measured.IDLE_ADS, measured.IDLE_OVERHEAD_MS]
    [cached] = re.findall(r"([\d,]+) cached pairs/s", PAGE)
    assert float(cached.replace(",", "")) == measured.CACHED_PAIRS_PER_S
    [busiest] = re.findall(r"computes up to ([\d.]+) x the mean", PAGE)
    assert float(busiest) == measured.BUSIEST_OVER_MEAN


def test_the_measured_figures_are_those_of_the_benchmarks() -> None:
    costs = (DEPLOY / "benchmarks" / "README.md").read_text(encoding="utf-8")
    pairs_per_s = figures(costs, r"\(([\d,]+) of ([\d,]+)\), which `deploy.capacity` plans with")
    assert pairs_per_s == [measured.PAIRS_PER_S, measured.BARE_PAIRS_PER_S]
    idle = figures(costs, r"On the slower day ([\d.]+) and ([\d.]+) ms")
    assert idle == [measured.IDLE_MS, measured.IDLE_OVERHEAD_MS]
    [cached] = re.findall(r"hit the cache throughout, .*?\| ([\d,]+) \|", costs)
    assert float(cached.replace(",", "")) == measured.CACHED_PAIRS_PER_S


def test_the_page_s_table_is_what_the_command_says(capsys: pytest.CaptureFixture[str]) -> None:
    rows = re.findall(r"^\| `(--.*?)` \| (\d+ x \d+) \|", PAGE, re.MULTILINE)
    assert len(rows) >= 4
    for arguments, pods in rows:
        told = printed(capsys, f"--auctions-per-s 500 --ads 20 {arguments}")
        assert told.startswith("{} pods of {} cores".format(*pods.split(" x ")))
