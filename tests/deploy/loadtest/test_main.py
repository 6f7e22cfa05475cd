from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import deploy.loadtest.__main__ as program
from deploy.loadtest.__main__ import main
from deploy.loadtest.answer_verdict import PairFate
from deploy.loadtest.locust_run import LocustRun
from deploy.loadtest.request_record import RecordedRun
from deploy.loadtest.target import NoTarget
from tests.deploy.loadtest.made_records import record
from tests.deploy.repository import ROOT


def load_test(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "deploy.loadtest", *options]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120
    )


def test_a_short_load_test_serves_the_bundle_and_writes_a_page(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    out = tmp_path / "report"
    run = load_test(
        *("--bundle", str(tiny_bundle_int8), "--out", str(out), "--seed", "3", "--ads", "4"),
        *("--timeout-ms", "2000", "--capacity-rps", "20", "--loads", "1", "--step-s", "2"),
        *("--timeline", "none"),
    )
    assert run.returncode == 0, run.stderr
    assert "[1/1] 1 x capacity: 20.0 requests/s" in run.stdout
    assert f"report: {out / 'report.html'}" in run.stdout
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    [step] = report["steps"]
    assert 20 < step["requests"] < 60
    assert step["shares"]["good"] > 0
    assert 0 < step["p50_ms"] < 2000
    manifest = json.loads((tiny_bundle_int8 / "manifest.json").read_text(encoding="utf-8"))
    assert report["facts"]["model"]["version"] == manifest["model"]["version"]
    assert report["fault_pairs"] == 0
    assert "<svg" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--loads", "1,0"], "0 is not above 0"),
        (["--step-s", "0"], "0 is not in 1-3600"),
        (["--url", "http://adrel.example"], "say so with --host-is-mine"),
        (["--url", "127.0.0.1:8000"], "--url: '127.0.0.1:8000' is not a URL like http://"),
        (["--url", "http://127.0.0.1:8000/v1/score"], "more than scheme, host and port"),
        (["--bundle", "nowhere"], "--bundle: no bundle in nowhere"),
    ],
)
def test_a_wrong_option_is_told_with_what_it_takes(
    options: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadtest", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_a_service_that_does_not_answer_is_told_in_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["loadtest", "--url", "http://127.0.0.1:1"])
    assert main() == 1
    assert "refused" in capsys.readouterr().err


def test_a_service_that_goes_midway_leaves_a_page_that_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dying(url: str, run: LocustRun, options: Sequence[str]) -> RecordedRun:  # noqa: ARG001
        return RecordedRun(0, [record(1 + i / 10) for i in range(10)])

    def model(url: str, key: str | None) -> dict[str, str]:  # noqa: ARG001
        if asked:
            raise NoTarget("connection refused")
        asked.append(url)
        return {"name": "m", "version": "1"}

    asked: list[str] = []
    monkeypatch.setattr(program, "serving_model", model)
    monkeypatch.setattr(program, "run_locust", dying)
    options = ["--url", "http://127.0.0.1:1", "--loads", "1", "--timeline", "none"]
    options += ["--capacity-rps", "1", "--out", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", ["loadtest", *options])
    assert main() == 1
    told = "Stopped early: the service has gone: connection refused."
    assert told in capsys.readouterr().out
    assert told in (tmp_path / "report.html").read_text(encoding="utf-8")


def test_a_fault_is_an_exit_code_and_a_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(url: str, run: LocustRun, options: Sequence[str]) -> RecordedRun:
        assert url == "http://127.0.0.1:1"
        assert "--ads" in options
        fates: tuple[PairFate, ...] = ("good", "failed")
        requests = [record(i / 10, fate=fates[i % 2]) for i in range(10 * run.seconds)]
        return RecordedRun(0, requests)

    model = {"name": "m", "version": "1"}
    monkeypatch.setattr(program, "serving_model", lambda url, key: model)  # noqa: ARG005
    monkeypatch.setattr(program, "run_locust", faulty)
    options = ["--url", "http://127.0.0.1:1", "--loads", "1", "--timeline", "none"]
    monkeypatch.setattr(sys, "argv", ["loadtest", *options, "--out", str(tmp_path)])
    assert main() == 1
    assert "Faults: " in capsys.readouterr().out
    assert (tmp_path / "report.html").is_file()
