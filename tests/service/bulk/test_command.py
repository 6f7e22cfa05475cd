from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.bulk.command import main


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def arguments(bundle: Path, path: Path, out: Path, *options: str) -> list[str]:
    return ["--bundle", str(bundle), "--in", str(path), "--out", str(out), *options]


def test_the_exit_code_tells_of_rows_that_were_set_aside(
    tiny_bundle_int8: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "pairs.csv", tmp_path / "scores.csv"
    path.write_text("query,text,id\nred,shoe,1\n,shoe,2\n", encoding="utf-8")
    assert main(arguments(tiny_bundle_int8, path, out, "--threads", "1"), 10_000) == 3
    assert "rows 2, scored 1 in" in capsys.readouterr().out
    rejects = (tmp_path / "scores.rejects.jsonl").read_text(encoding="utf-8")
    assert json.loads(rejects) == {
        "row": 2, "line": 3, "reason": "query: must not be empty or only white space",
        "content": {"query": "", "text": "shoe", "id": "2"},
    }  # fmt: skip


def test_rejects_go_where_they_were_asked_for(tiny_bundle_int8: Path, tmp_path: Path) -> None:
    path, out, rejects = (tmp_path / name for name in ("a.jsonl", "b.jsonl", "c.jsonl"))
    path.write_text('{"query": "red", "text": "shoe"}', encoding="utf-8")
    options = arguments(tiny_bundle_int8, path, out, "--rejects", str(rejects))
    assert main(options, 10_000) == 0
    assert rejects.read_bytes() == b""


@pytest.mark.parametrize(
    ("path", "out", "reason"),
    [
        ("absent.csv", "b.csv", "absent.csv: cannot be read: No such file"),
        ("a.jsonl", "b.txt", "b.txt: the name must end in .jsonl, .csv or .parquet"),
        ("a.jsonl", "no/folder/b.csv", "No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tiny_bundle_int8: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    path: str,
    out: str,
    reason: str,
) -> None:
    (tmp_path / "a.jsonl").touch()
    options = arguments(tiny_bundle_int8, tmp_path / path, tmp_path / out)
    assert main(options, 10_000) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line.startswith("adrel: ")
    assert reason in line


def test_a_bundle_that_is_not_there_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, tmp_path / "a.csv", tmp_path / "b.csv"), 10_000) == 1
    assert "adrel: no bundle at" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--threads", "0"], ["--threads", "x"], ["--no-such-option"]])
def test_wrong_options_are_exit_code_2(tmp_path: Path, options: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments(tmp_path, tmp_path / "a.csv", tmp_path / "b.csv", *options), 10_000)
    assert stopped.value.code == 2
