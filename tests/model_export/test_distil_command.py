from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_export.__main__ import main
from tests.tiny_models import WORDS, write_bert

ADS = [f"{WORDS[n % 15]} {WORDS[(7 * n + 3) % 15]}" for n in range(20)]


def pairs_file(path: Path, query: str) -> str:
    rows = [f"{query},{ad},{int('shoe' in ad)}" for ad in ADS]
    path.write_text("query,text,label\n" + "\n".join(rows), encoding="utf-8")
    return str(path)


def test_products_and_queries_become_a_student_that_export_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("bm25s")
    teacher = write_bert(tmp_path / "teacher")
    products, queries = tmp_path / "products.csv", tmp_path / "queries.txt"
    products.write_text("text\n" + "\n".join(ADS), encoding="utf-8")
    queries.write_text("red\nblue shoe\n", encoding="utf-8")
    command = ["distil", "--teacher", str(teacher), "--products", str(products), "--queries",
               str(queries), "--dev", pairs_file(tmp_path / "dev.csv", "bag"), "--cache",
               str(tmp_path / "cache"), "--n-layers", "1", "--epochs", "1", "--sampled-pairs",
               "40", "--pseudo-query-share", "0.25"]  # fmt: skip
    assert main([*command, "--out", str(tmp_path / "student")]) == 0
    shown = capsys.readouterr()
    report = json.loads(shown.out)
    assert report["recipe"]["pseudo_query_share"] == 0.25
    assert report["n_unlabelled"] > 10
    assert "epoch 1: mean AUC" in shown.err
    export = ["export", "--checkpoint", str(tmp_path / "student"), "--precision", "fp32"]
    assert main([*export, "--no-latency", "--out", str(tmp_path / "bundle")]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--n-layers", "0"], "n_layers must be at least 1, got 0"),
        (["--n-layers", "3"], "n_layers is 3, and the teacher has 2 layers"),
        (["--layers", "middle", "--n-layers", "1"], "layers must be one of"),
        (["--pairs", "absent.csv"], "absent.csv"),
        (["--queries", "DEV"], "no products to pair them with"),
        (["--pairs", "DEV"], "are in the dev files and in the training pairs"),
        (["--dev", "DEV"], "two --dev files have the name dev.csv"),
        (["--start", "nowhere"], "nowhere is no student that distil wrote"),
        (["--start", "nowhere", "--layers", "first"], "--layers says what a student starts from"),
    ],
)
def test_what_cannot_work_ends_with_one_sentence_before_any_training(
    tiny_checkpoint: Path,
    tmp_path: Path,
    options: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    dev = pairs_file(tmp_path / "dev.csv", "bag")
    given = [dev if option == "DEV" else option for option in options]
    train = [] if "DEV" in options else ["--pairs", pairs_file(tmp_path / "train.csv", "red")]
    out = tmp_path / "student"
    command = ["distil", "--teacher", str(tiny_checkpoint), "--dev", dev, "--out", str(out)]
    if "--n-layers" not in options:
        given += ["--n-layers", "1"]
    assert main([*command, "--cache", str(tmp_path / "cache"), *train, *given]) == 1
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_a_folder_that_is_something_else_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    dev = pairs_file(tmp_path / "dev.csv", "bag")
    assert main(["distil", "--dev", dev, "--out", str(tmp_path)]) == 1
    assert "is nothing that this command wrote" in capsys.readouterr().err


def test_a_student_to_go_on_from_brings_its_layers(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["distil", "--teacher", str(tiny_checkpoint), "--cache", str(tmp_path / "cache"),
               "--dev", pairs_file(tmp_path / "dev.csv", "bag"), "--epochs", "1", "--pairs",
               pairs_file(tmp_path / "train.csv", "red")]  # fmt: skip
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    assert main([*command, "--n-layers", "1", "--out", first]) == 0
    assert main([*command, "--start", first, "--n-layers", "2", "--out", second]) == 1
    assert "--n-layers is 2, and the student" in capsys.readouterr().err
    assert main([*command, "--start", first, "--out", second]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["recipe"]["n_layers"], report["layers"]) == (1, [1])
