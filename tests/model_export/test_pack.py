from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from transformers import AutoTokenizer, BertForSequenceClassification

from model_export.__main__ import main
from model_export.checkpoint import CALIBRATION_FILE, load_checkpoint
from model_export.delta_checkpoint import load_delta_checkpoint
from model_export.distillation.recipe import REPORT_FILE
from model_export.distillation.student import make_student
from model_export.held_out_margins import held_out_margins
from model_export.pairs import read_pairs
from model_export.reference_logits import load_original
from model_export.weight_delta import WEIGHTS_FILE
from model_export.write_checkpoint import save_checkpoint
from service.scoring.bundle_files import read_manifest
from tests.model_export.tiny_bert import write_pairs, write_tiny_base


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_base(tmp_path_factory.mktemp("made") / "base")


@pytest.fixture(scope="module")
def student(base: Path) -> Path:
    """A folder as distil leaves one, of the base's first layer with some noise."""
    folder = base.with_name("student")
    folder.mkdir()
    torch.manual_seed(1)
    model = make_student(
        BertForSequenceClassification.from_pretrained(base, num_labels=1), layers=(0,)
    )
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embeddings" not in name:
                weight.add_(0.1 * torch.randn_like(weight))
    save_checkpoint(model, AutoTokenizer.from_pretrained(base), folder, 24)
    (folder / REPORT_FILE).write_text('{"layers": [0]}', encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def dev(base: Path, student: Path) -> Path:
    """Pairs whose labels follow the student, so that it can be calibrated."""
    file = write_pairs(base.with_name("dev.jsonl"))
    margins = held_out_margins(load_checkpoint(str(student), None, None), read_pairs(file))
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    middle = sorted(margins)[len(margins) // 2]
    labelled = [{**row, "label": int(m > middle)} for row, m in zip(rows, margins, strict=True)]
    file.write_text("\n".join(json.dumps(row) for row in labelled), encoding="utf-8")
    return file


def command(student: Path, base: Path, dev: Path, out: Path, *more: str) -> list[str]:
    return ["pack", "--student", str(student), "--base", str(base), "--dev", str(dev),
            "--out", str(out), *more]  # fmt: skip


def test_a_packed_student_is_what_export_and_evaluate_take(
    student: Path, base: Path, dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "delta"
    assert main(command(student, base, dev, out)) == 0
    report = json.loads(capsys.readouterr().out)
    assert json.loads((out / "pack_report.json").read_text(encoding="utf-8")) == report
    assert report["n_bytes"] == (out / WEIGHTS_FILE).stat().st_size
    assert 0 < report["mean_change"] < 0.05
    assert report["after"]["dev.jsonl"]["auc"] == pytest.approx(
        report["before"]["dev.jsonl"]["auc"], abs=0.02
    )
    assert (out / REPORT_FILE).read_bytes() == (student / REPORT_FILE).read_bytes()
    packed = load_original(str(out))
    assert packed.source == "layers 0 of base with delta delta"
    assert packed.max_length_tokens == 24
    assert packed.calibration is not None
    assert packed.calibration.fitted_on == "dev.jsonl"
    bundle = tmp_path / "bundle"
    export = ["export", "--checkpoint", str(out), "--precision", "fp32", "--no-latency"]
    assert main([*export, "--out", str(bundle), "--name", "small"]) == 0
    manifest = read_manifest(bundle)
    assert manifest.model.name == "small"
    assert manifest.model.source_sha256 == packed.source_sha256
    assert manifest.score_calibration == packed.calibration


def test_fewer_bytes_cost_precision_and_give_another_version(
    student: Path, base: Path, dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes, hashes = [], set()
    for name, max_bytes in (("fine", "20000"), ("coarse", "8000")):
        assert main(command(student, base, dev, tmp_path / name, "--max-bytes", max_bytes)) == 0
        changes.append(json.loads(capsys.readouterr().out)["mean_change"])
        hashes.add(load_delta_checkpoint(tmp_path / name, None, None).source_sha256)
    assert changes[1] > 2 * changes[0]
    assert len(hashes) == 2


def test_an_older_delta_is_replaced_where_that_is_asked_for_and_anything_else_left_alone(
    student: Path, base: Path, dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "delta"
    assert main(command(student, base, dev, out)) == 0
    coarser = command(student, base, dev, out, "--max-bytes", "9000")
    assert main(coarser) == 1
    assert "already holds a model of this command" in capsys.readouterr().err
    assert (out / WEIGHTS_FILE).stat().st_size > 9000
    (out / "model.safetensors").write_bytes(b"of an older checkpoint")
    (out / "README.md").write_text("mine", encoding="utf-8")
    assert main([*coarser, "--overwrite"]) == 0
    assert not (out / "model.safetensors").exists()
    assert (out / "README.md").read_text(encoding="utf-8") == "mine"
    assert (out / WEIGHTS_FILE).stat().st_size <= 9000
    assert (out / CALIBRATION_FILE).is_file()
    assert main(command(student, base, dev, base, "--overwrite")) == 1
    assert "is nothing that this command wrote" in capsys.readouterr().err


def test_a_folder_that_distil_did_not_write_is_refused(
    base: Path, dev: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(base, base, dev, tmp_path / "delta")) == 1
    assert "is no student that distil wrote" in capsys.readouterr().err
    assert not (tmp_path / "delta").exists()
