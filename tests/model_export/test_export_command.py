from __future__ import annotations

import argparse
import json
from dataclasses import fields
from pathlib import Path

import pytest

from model_export import export_command
from model_export.__main__ import main
from model_export.parity import TOLERANCES, Tolerances, tolerance_option
from service.scoring.bundle_files import read_manifest
from tests.tiny_models import write_bert

PAGE = (Path(__file__).parents[2] / "model_export" / "README.md").read_text(encoding="utf-8")


def parsed(*options: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    export_command.add_to(parser)
    return parser.parse_args(["--out", "bundle", *options])


def test_every_tolerance_is_an_option_and_stands_in_the_readme_with_its_defaults() -> None:
    for entry in fields(Tolerances):
        option = tolerance_option(entry.name)
        defaults = [f"{getattr(TOLERANCES[kind], entry.name):g}" for kind in TOLERANCES]
        int8, fp16, fp32 = defaults[2], defaults[1], defaults[0]
        assert f"| `{option}` | {int8} | {fp16} | {fp32} |" in PAGE
        given = export_command._tolerances(parsed(option, "0.25"))
        assert given == {entry.name: 0.25}


@pytest.mark.parametrize(
    "option", [["--grades", "0,1,2"], ["--relevant-label", "1"], ["--allow-pickle"]]
)
def test_what_only_a_checkpoint_of_ones_own_needs_is_refused_without_one(
    option: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--out", str(tmp_path / "out"), *option]) == 1
    assert f"{option[0]} is for a --checkpoint" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_target_that_does_not_fit_the_precision_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", "--out", str(tmp_path / "out"), "--target", "cuda"]) == 1
    assert capsys.readouterr().err.startswith("adrel: int8 is for CPUs")


def test_options_reach_the_export(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = write_bert(tmp_path / "model", n_labels=3), tmp_path / "out"
    command = ["export", "--checkpoint", str(folder), "--out", str(out), "--no-latency"]
    assert main([*command, "--precision", "fp16"]) == 1
    assert "LABEL_0" in capsys.readouterr().err
    assert main([*command, "--precision", "fp16", "--grades", "2,1,0"]) == 0
    manifest = read_manifest(out)
    assert manifest.precision.target == "cuda"
    assert manifest.head.grades == (1.0, 0.5, 0.0)
    assert main([*command, "--grades", "0,1,2", "--max-mean-score", "0"]) == 1
    assert "mean_score is" in capsys.readouterr().err
    assert main([*command, "--grades", "0,1,2", "--max-mean-score", "0", "--fallback", "fp32"]) == 0
    assert read_manifest(out).precision.weights == "fp32"


@pytest.mark.usefixtures("drawn")
def test_the_report_of_a_bundle_is_drawn_again(
    tiny_bundle_int8: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tiny_bundle_int8 / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert main(["report", "--bundle", str(tiny_bundle_int8)]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    assert page.read_bytes() == before


def test_a_folder_without_a_report_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", "--bundle", str(tmp_path)]) == 1
    assert "report.json cannot be read" in capsys.readouterr().err


def test_a_checkpoint_whose_training_has_failed_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_bert(tmp_path / "model")
    report = {"learnt_nothing": "the model has learnt nothing: dev AUC 0.41"}
    (folder / "training_report.json").write_text(json.dumps(report), encoding="utf-8")
    command = ["export", "--checkpoint", str(folder), "--out", str(tmp_path / "bundle")]
    assert main([*command, "--precision", "fp32", "--no-latency"]) == 0
    assert "warning: the model has learnt nothing: dev AUC 0.41" in capsys.readouterr().out
