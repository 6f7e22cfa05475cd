from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from safetensors.torch import load_file

from model_export.__main__ import main
from model_export.finetuning.run_folder import last_whole_checkpoint, run_folder
from model_export.finetuning.stages import LABELS
from tests.model_export.tiny_bert import write_pairs, write_tiny_base

LONGEST_WAIT_S = 120.0


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    base, pairs = write_tiny_base(tmp_path / "base"), write_pairs(tmp_path / "pairs.jsonl")
    return ["finetune", "--train", str(pairs), "--dev", str(pairs), "--base", str(base),
            "--approach", "full", "--max-pair-tokens", "16"]  # fmt: skip


def test_what_is_given_is_trained_and_the_report_is_printed(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    code = main([*command, "--out", str(out), "--epochs", "2", "--learning-rate", "1e-3",
                 "--head", "classes", "--weight-decay", "0.05"])  # fmt: skip
    assert code == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["recipe"]["weight_decay"] == 0.05
    assert report["labels"] == ["irrelevant", "relevant"]
    assert [line for line in shown.err.splitlines() if "mean auc" in line]
    assert "warning: 10 queries are in the training and in the dev pairs" in shown.err
    assert json.loads((out / "config.json").read_text())["architectures"] == [
        "BertForSequenceClassification"
    ]


def test_raters_that_enter_the_targets_are_told(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"query": "red", "title": "shoe", "label": 1, "raters": [1, 1, 0]}\n')
    command = [*command, "--epochs", "1"]
    assert main([*command, "--out", str(tmp_path / "a"), "--rater-share", "0.25"]) == 0
    assert "note: raters' votes are 25% of the target of 1 of the 61" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "b"), "--rater-share", "0"]) == 0
    assert "raters' votes" not in capsys.readouterr().err


def test_grades_without_a_column_of_the_best_one_are_learnt_on_the_scale_that_is_given(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    graded = [
        {"query": row["query"], "title": row["title"], "grade": 2 * row["label"]} for row in rows
    ]
    (tmp_path / "pairs.jsonl").write_text("\n".join(map(json.dumps, graded)), encoding="utf-8")
    code = main([*command, "--out", str(tmp_path / "out"), "--epochs", "1", "--head", "grades",
                 "--max-grade", "3"])  # fmt: skip
    assert code == 0
    report = json.loads(capsys.readouterr().out)
    assert report["recipe"]["max_grade"] == 3
    assert report["labels"] == ["grade_0", "grade_1", "grade_2", "grade_3"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--loss", "cross-entropy"], "loss cross-entropy does not fit head logit"),
        (["--epochs", "0"], "epochs must be at least 1, got 0"),
        (["--dev", "pairs.jsonl"], "two --dev files have one name"),
    ],
)
def test_what_does_not_fit_is_one_sentence(
    tmp_path: Path,
    command: list[str],
    options: list[str],
    reason: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([*command, "--out", str(tmp_path / "out"), *options]) == 1
    assert reason in capsys.readouterr().err


def test_a_faulty_line_is_named_with_its_number(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "pairs.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"query": "red", "title": "shoe", "label": 7}\n')
    assert main([*command, "--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr().err
    assert "pairs.jsonl, line 61: 'label' must be in 0-1, got 7" in shown


def test_a_run_that_was_killed_goes_on_and_ends_with_the_same_weights(
    tmp_path: Path, command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    dev = tmp_path / "dev.jsonl"
    rows = (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    dev.write_text("\n".join(reversed(rows)), encoding="utf-8")
    command[command.index("--dev") + 1] = str(dev)
    command = [*command, "--epochs", "6", "--learning-rate", "1e-3"]
    process = subprocess.Popen(
        [sys.executable, "-m", "model_export", *command, "--out", str(out)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline_s = time.monotonic() + LONGEST_WAIT_S
        while last_whole_checkpoint(run_folder(out) / LABELS) is None:
            assert process.poll() is None
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
    finally:
        process.kill()
        process.wait()
    assert not out.exists()
    assert main([*command, "--out", str(out)]) == 1
    assert "go on with --resume" in capsys.readouterr().err
    assert main([*command, "--out", str(out), "--resume", "--seed", "7"]) == 1
    assert "training that differs in recipe:" in capsys.readouterr().err
    exchanged = {"--train": "--dev", "--dev": "--train"}
    swapped = [exchanged.get(word, word) for word in command]
    assert main([*swapped, "--out", str(out), "--resume"]) == 1
    assert "that differs in dev files, training files" in capsys.readouterr().err
    assert main([*command, "--out", str(out), "--resume"]) == 0
    resumed = capsys.readouterr()
    assert "epoch 1:" not in resumed.err, "it was there already"
    assert main([*command, "--out", str(whole)]) == 0
    assert json.loads(resumed.out)["epochs"] == json.loads(capsys.readouterr().out)["epochs"]
    weights = (load_file(folder / "model.safetensors") for folder in (out, whole))
    first, second = weights
    assert all((second[name] == tensor).all() for name, tensor in first.items())
    assert not run_folder(out).exists()
