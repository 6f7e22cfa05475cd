from __future__ import annotations

import errno
import json
import os
import re
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
    rejects = (tmp_path / "scores.csv.rejects.jsonl").read_text(encoding="utf-8")
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


def test_two_outputs_that_differ_in_their_suffix_have_rejects_of_their_own(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "red", "text": "shoe"}', encoding="utf-8")
    for out in ("scores.jsonl", "scores.csv"):
        assert main(arguments(tiny_bundle_int8, path, tmp_path / out), 10_000) == 0
        assert (tmp_path / f"{out}.rejects.jsonl").is_file()


def test_a_full_disk_is_told_with_the_file_and_the_way_on(
    tiny_bundle_int8: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path, out = tmp_path / "pairs.jsonl", tmp_path / "scores.jsonl"
    path.write_text('{"query": "red", "text": "shoe"}', encoding="utf-8")
    with monkeypatch.context() as patched:
        patched.setattr("os.fsync", full)
        assert main(arguments(tiny_bundle_int8, path, out), 10_000) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"adrel: .*scores\.jsonl\.parts/.*: No space left on device; --resume goes on .*", line
    )
    assert main(arguments(tiny_bundle_int8, path, out, "--resume"), 10_000) == 0


def test_a_run_that_has_ended_leaves_nothing_to_resume_and_says_so(
    tiny_bundle_int8: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "pairs.jsonl", tmp_path / "scores.jsonl"
    path.write_text('{"query": "red", "text": "shoe"}', encoding="utf-8")
    assert main(arguments(tiny_bundle_int8, path, out), 10_000) == 0
    before = out.read_bytes()
    assert main(arguments(tiny_bundle_int8, path, out, "--resume"), 10_000) == 1
    assert "nothing is left to resume" in capsys.readouterr().err
    assert main(arguments(tiny_bundle_int8, path, out), 10_000) == 1
    assert "exists already" in capsys.readouterr().err
    assert out.read_bytes() == before
    with pytest.raises(SystemExit):
        main(["--help"], 10_000)
    told = " ".join(capsys.readouterr().out.split())
    assert "After 0 and 3 nothing is left to go on with" in told


@pytest.mark.parametrize(
    ("path", "out", "reason"),
    [
        ("absent.csv", "b.csv", "absent.csv: cannot be read: No such file"),
        ("a.jsonl", "b.txt", "b.txt: the name must end in .jsonl, .csv or .parquet"),
        ("a.jsonl", "no/folder/b.csv", "b.csv: there is no folder "),
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


def test_without_the_option_the_bundle_is_the_services_own(
    tiny_bundle_int8: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.csv").write_text("query,text\nred,shoe\n", encoding="utf-8")
    monkeypatch.setenv("ADREL_BUNDLE", str(tiny_bundle_int8))
    assert main(["--in", str(tmp_path / "a.csv"), "--out", str(tmp_path / "b.csv")], 10_000) == 0
    monkeypatch.setenv("ADREL_BUNDLE", str(tmp_path / "absent"))
    assert main(["--in", str(tmp_path / "a.csv"), "--out", str(tmp_path / "c.csv")], 10_000) == 1
    assert "no bundle at" in capsys.readouterr().err


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
