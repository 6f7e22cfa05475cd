from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TextIO

import pytest

from model_export import evaluate_command
from model_export.__main__ import main
from tests.model_export.tiny_bert import write_tiny_base
from tests.tiny_models import WORDS


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.csv"
    rows = [f"red {WORDS[n % 3]},{WORDS[n % 15]} {WORDS[n % 5]},{n % 2}" for n in range(45)]
    file.write_text("query,title,label\n" + "\n".join(rows), encoding="utf-8")
    return file


def test_models_come_in_the_order_of_the_command_line_then_the_baselines(
    tiny_bundle_int8: Path,
    tiny_checkpoint: Path,
    pairs_file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("bm25s")
    base, file = write_tiny_base(tmp_path / "base"), tmp_path / "figures.json"
    code = main(["evaluate", "--checkpoint", str(tiny_checkpoint), "--bundle",
                 str(tiny_bundle_int8), "--baselines", "--base", str(base), "--pairs",
                 str(pairs_file), "--resamples", "50", "--json", str(file)])  # fmt: skip
    assert code == 0
    models = json.loads(file.read_text(encoding="utf-8"))["models"]
    assert [model["name"] for model in models[:3]] == [
        str(tiny_checkpoint), str(tiny_bundle_int8), "word overlap",
    ]  # fmt: skip
    assert len(models) == 7
    shown = capsys.readouterr()
    assert "45 pairs (22 relevant) of 3 queries" in shown.out
    assert "source: pairs.csv" in shown.out
    assert str(tiny_checkpoint) in shown.err, "progress"


def test_json_on_stdout_stands_there_alone(
    tiny_bundle_int8: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "--bundle", str(tiny_bundle_int8), "--pairs", str(pairs_file)]
    assert main([*command, "--resamples", "0", "--k", "3", "--json", "-"]) == 0
    shown = capsys.readouterr()
    document = json.loads(shown.out)
    assert document["pairs"]["n_pairs"] == 45
    assert document["models"][0]["figures"]["auc"]["low"] is None
    assert "NDCG@3" in shown.err


def test_a_reader_of_the_tables_who_stops_early_costs_no_json(
    tiny_bundle_int8: Path, pairs_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: str, file: TextIO | None = None) -> None:
        if file is None:  # stdout, not the notes on stderr
            raise BrokenPipeError

    monkeypatch.setattr(evaluate_command, "print", stop, raising=False)
    file = tmp_path / "figures.json"
    parser = argparse.ArgumentParser()
    evaluate_command.add_to(parser)
    arguments = ["--bundle", str(tiny_bundle_int8), "--pairs", str(pairs_file), "--json", str(file)]
    with pytest.raises(BrokenPipeError):
        evaluate_command.run(parser.parse_args([*arguments, "--resamples", "0"]))
    assert json.loads(file.read_text(encoding="utf-8"))["models"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to judge: give --bundle, --checkpoint or --baselines"),
        (["--bundle", "b", "--relevant-label", "1"], "--relevant-label is for a --checkpoint"),
        (["--bundle", "b", "--allow-pickle"], "--allow-pickle is for a --checkpoint"),
        (["--bundle", "b", "--k", "0"], "--k must be at least 1, got 0"),
        (["--bundle", "b", "--resamples", "-1"], "--resamples must be at least 0, got -1"),
        (["--bundle", "b", "--max-length", "0"], "--max-length is for a --checkpoint"),
        (["--bundle", "b", "--json", "no/f.json"], "--json: there is no folder no"),
        (["--bundle", "b", "--max-grade", "0"], "--max-grade must be over 0, got 0"),
        (["--bundle", "nowhere"], "nowhere"),
        (["--bundle", "b", "--format", "jsonl"], "line 1: not JSON"),
    ],
)
def test_options_that_cannot_be_used_end_with_one_sentence(
    pairs_file: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--pairs", str(pairs_file), *arguments]) == 1
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.splitlines()[-1].startswith("adrel: ")


def test_grades_with_their_best_one_are_enough(
    tiny_bundle_int8: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "graded.csv"
    rows = [f"red shoe,{word},{n % 4}" for n, word in enumerate(WORDS)]
    file.write_text("query,title,grade\n" + "\n".join(rows), encoding="utf-8")
    command = ["evaluate", "--bundle", str(tiny_bundle_int8), "--pairs", str(file)]
    assert main(command) == 1
    assert "line 2: 'grade' without" in capsys.readouterr().err
    assert main([*command, "--max-grade", "3", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["pairs"]["n_relevant"] == 7  # grades 2 and 3


def test_checkpoints_are_judged_on_pairs_as_long_as_asked(
    tiny_checkpoint: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["evaluate", "--checkpoint", str(tiny_checkpoint), "--pairs", str(pairs_file)]
    assert main([*command, "--max-length", "8", "--resamples", "0", "--json", "-"]) == 0
    model = json.loads(capsys.readouterr().out)["models"][0]
    assert model["facts"]["max_length_tokens"] == 8
    assert main([*command, "--max-length", "7"]) == 1
    assert "max length 7, which is outside 8-64" in capsys.readouterr().err


def test_pairs_of_one_class_are_refused_before_any_model_is_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "same.csv"
    file.write_text("query,text,label\nq,a,1\nq,b,1\n", encoding="utf-8")
    assert main(["evaluate", "--bundle", "nowhere", "--pairs", str(file)]) == 1
    assert "all 2 pairs are relevant" in capsys.readouterr().err
