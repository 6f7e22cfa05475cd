"""`score-file` as its users meet it: a real process, killed and stopped, beside a real service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.running_service import ROOT, environment, running
from tests.waiting import until

WORDS = "red blue green shoe bag cheap run fast long lamp chair".split()  # noqa: SIM905  # reads better
WAIT_S = 60

# The command, with parts that are small enough to be killed between two of them.
IN_SMALL_PARTS = """
import sys
from service.bulk.command import main
from service.bulk.table import PartSize
sys.exit(main(sys.argv[1:], 10_000, PartSize(rows=50)))
"""
N_ROWS = 6000


def row(number: int) -> dict[str, Any]:
    ad = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(1, 3 + number % 20))
    return {"id": f"ad {number}", "query": f"{WORDS[number % 7]} {number % 13}", "title": ad}


def written(folder: Path, n_rows: int) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("\n".join(json.dumps(row(n)) for n in range(n_rows)), encoding="utf-8")
    return path


def command(bundle: Path, path: Path, out: Path, *options: str) -> list[str]:
    return ["--bundle", str(bundle), "--in", str(path), "--out", str(out), *options]


def run(arguments: list[str], *python: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *(python or ("-m", "service", "score-file")), *arguments],
        cwd=ROOT, env=environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_scores_of_a_file_are_those_of_the_service(tiny_bundle_int8: Path, tmp_path: Path) -> None:
    path, out = written(tmp_path, 300), tmp_path / "scores.jsonl"
    result = run(command(tiny_bundle_int8, path, out))
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith(f"rows 300, scored 300 in {out}, rejected 0 in ")
    scored = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    by_query: dict[str, list[int]] = {}
    for number in range(300):
        by_query.setdefault(row(number)["query"], []).append(number)
    with running(tiny_bundle_int8) as service:
        for query, numbers in by_query.items():
            ads = [{name: row(n)[name] for name in ("id", "title")} for n in numbers]
            answer = service.score({"query": query, "ads": ads}).json()
            for number, ad in zip(numbers, answer["scores"], strict=True):
                assert scored[number]["score"] == ad["score"]
                assert scored[number]["id"] == ad["id"]
                assert scored[number]["model_version"] == answer["model"]["version"]


@pytest.fixture(scope="module")
def whole(tiny_bundle_int8: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What a run gives that nobody stops, with parts of the usual size."""
    folder = tmp_path_factory.mktemp("whole")
    out = folder / "scores.csv"
    assert run(command(tiny_bundle_int8, written(folder, N_ROWS), out)).returncode == 0
    return out.read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143)])
def test_a_run_that_was_stopped_is_resumed_and_gives_the_same_bytes(
    tiny_bundle_int8: Path, whole: bytes, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    path, out = written(tmp_path, N_ROWS), tmp_path / "scores.csv"
    arguments = command(tiny_bundle_int8, path, out, "--resume")
    with subprocess.Popen(
        [sys.executable, "-c", IN_SMALL_PARTS, *arguments],
        cwd=ROOT, env=environment(), stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        parts = tmp_path / "scores.csv.parts" / "_run"
        until(lambda: process.poll() is not None or len(list(parts.glob("done-*"))) >= 3)
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(WAIT_S) == code
    n_done = len(list(parts.glob("done-*")))
    assert 3 <= n_done < N_ROWS / 50
    assert not out.exists()
    resumed = run(arguments, "-c", IN_SMALL_PARTS)
    assert resumed.returncode == 0
    assert f"rows 6,000 ({N_ROWS - 50 * n_done:,} of them in this run)" in resumed.stdout
    assert out.read_bytes() == whole


def test_parquet_without_its_extra_says_what_to_install(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = None; sys.argv[1:1] = ['score-file']\n"
        "from service.__main__ import main; sys.exit(main())"
    )
    result = run(command(tiny_bundle_int8, tmp_path / "a.parquet", tmp_path / "b.csv"), "-c", code)
    assert result.returncode == 1
    assert result.stderr == "adrel: Parquet needs pyarrow: pip install '.[bulk]'\n"
