from __future__ import annotations

from pathlib import Path

import pytest

from model_export.__main__ import main

COMMANDS = {
    "finetune": ("--train", "--dev", "--base"),
    "evaluate": ("--pairs", "--bundle"),
    "export": ("--calibrate", "--checkpoint"),
    "distil": ("--pairs", "--dev", "--teacher"),
    "pack": ("--dev", "--student"),
}
"""Options of each command for files of pairs, and the last for a model."""


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    file = tmp_path / "graded.csv"
    file.write_text("query,text,grade\nq,a,2\nq,b,0\nq,c,1\n", encoding="utf-8")
    return file


def command(name: str, pairs: Path, absent: Path) -> list[str]:
    *files, model = COMMANDS[name]
    out = [] if name == "evaluate" else ["--out", str(absent.with_name("out"))]
    given = [word for option in files for word in (option, str(pairs))]
    return [name, *given, model, str(absent), *out]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_reads_pairs_takes_grades_with_their_best_one(
    name: str, graded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(name, graded, graded.with_name("absent"))
    assert main(words) == 1
    assert "graded.csv, line 2: 'grade' without" in capsys.readouterr().err
    assert main([*words, "--max-grade", "1"]) == 1
    assert "graded.csv, line 2: 'grade' must be in 0-1" in capsys.readouterr().err
    assert main([*words, "--max-grade", "2"]) == 1
    shown = capsys.readouterr().err
    assert "graded.csv" not in shown, "the pairs are read, and then comes the model"
    assert "absent" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_best_grade_that_is_none_is_refused_before_any_file_is_opened(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = command(name, tmp_path / "pairs.csv", tmp_path / "absent")
    for best in ("0", "-3", "nan", "inf"):
        assert main([*words, f"--max-grade={best}"]) == 1
        assert f"--max-grade must be over 0, got {best}" in capsys.readouterr().err
