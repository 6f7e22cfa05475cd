from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from model_export import export, rowwise_int8
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.errors import ExportError, ParityFailed
from model_export.export import export_bundle
from model_export.pairs import LabelledPair
from model_export.to_onnx import convert
from service.domain import Ad
from service.scoring.bundle import open_bundle, read_manifest, self_test
from tests.tiny_models import WORDS, write_bert


@pytest.fixture
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), None, None)


def quiet(_: str) -> None:
    pass


def test_the_manifest_states_what_was_measured(tiny_bundle_int8: Path) -> None:
    manifest = read_manifest(tiny_bundle_int8)
    assert manifest.precision.weights == "int8"
    assert manifest.precision.recipe == rowwise_int8.RECIPE
    assert set(manifest.parity) == {"fp32", "int8"}
    assert manifest.parity["fp32"]["worst_logit"] < 1e-4
    assert manifest.parity["int8"]["batch_spread"] == 0
    assert manifest.parity["int8"]["mean_score"] > 0, "int8 without any difference was not int8"
    assert sum(manifest.score_histogram) == pytest.approx(1, abs=0.01)
    assert set(manifest.inputs.names) == {"input_ids", "token_type_ids", "attention_mask"}


def test_a_two_class_and_a_graded_checkpoint_become_bundles_too(tmp_path: Path) -> None:
    for n_labels, relevant in ((2, "LABEL_1"), (4, None)):
        folder = write_bert(tmp_path / f"labels-{n_labels}", n_labels=n_labels)
        out = tmp_path / f"bundle-{n_labels}"
        export_bundle(load_checkpoint(str(folder), relevant, None), "fp32", out, report=quiet)
        bundle = open_bundle(out)
        assert self_test(bundle) < 1e-3
        pairs = bundle.encode("red", [Ad("1", text="shoe"), Ad("2", text="bag")])
        scores = bundle.to_scores(bundle.model.logits(pairs))
        assert ((scores > 0) & (scores < 1)).all()


def damage(graph: onnx.ModelProto) -> None:
    """Weights of one matrix in the wrong order: loads, runs, and scores wrongly."""
    tensor = next(t for t in graph.graph.initializer if len(t.dims) == 2 and t.dims[0] == 32)
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(values[::-1].copy(), tensor.name))


def test_a_graph_that_scores_otherwise_is_refused_with_its_worst_pairs_and_nothing_is_written(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(*arguments: Any) -> onnx.ModelProto:  # noqa: ANN401  # passed through
        graph = convert(*arguments)
        damage(graph)
        return graph

    monkeypatch.setattr(export, "convert", damaged)
    with pytest.raises(ParityFailed, match="worst_logit is") as caught:
        export_bundle(checkpoint, "int8", tmp_path / "out", report=quiet)
    assert "worst pairs" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_bundle_is_never_overwritten(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    (tmp_path / "precious.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="is not a bundle"):
        export_bundle(checkpoint, "fp32", tmp_path, report=quiet)
    assert [file.name for file in tmp_path.iterdir()] == ["precious.txt"]


def labelled_by(bundle_path: Path, n_pairs: int = 200) -> list[LabelledPair]:
    """Pairs whose labels follow the model's own score, with noise."""
    bundle, rng = open_bundle(bundle_path), random.Random(2)  # noqa: S311  # a fixed sequence
    texts = [" ".join(rng.choices(WORDS, k=rng.randint(2, 12))) for _ in range(n_pairs)]
    logits = bundle.model.logits(bundle.encode("red shoe", [Ad("1", text=t) for t in texts]))
    middle, noise = float(np.median(logits)), 0.3 * float(logits.std())
    return [
        LabelledPair("red shoe", Ad(str(i), text=text), float(logit > middle + rng.gauss(0, noise)))
        for i, (text, logit) in enumerate(zip(texts, logits[:, 0], strict=True))
    ]


def test_labelled_pairs_give_calibration_quality_and_another_version(
    checkpoint: Checkpoint, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    pairs = labelled_by(tiny_bundle_int8)
    out = tmp_path / "calibrated"
    manifest = export_bundle(checkpoint, "int8", out, pairs, report=quiet)
    plain = read_manifest(tiny_bundle_int8)
    assert manifest.score_calibration.fitted_on == "200 pairs given at export"
    assert manifest.score_calibration.slope != 1
    assert manifest.quality["served"]["auc"] > 0.8
    assert manifest.quality["served"]["pairs"] == 200
    assert abs(manifest.quality["torch"]["auc"] - manifest.quality["served"]["auc"]) < 0.02
    assert manifest.model.version != plain.model.version
    assert manifest.files_sha256["model.onnx"] == plain.files_sha256["model.onnx"]


def test_the_same_export_twice_is_the_same_version_and_replaces_the_bundle(
    checkpoint: Checkpoint, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    first = export_bundle(checkpoint, "fp32", out, report=quiet)
    second = export_bundle(checkpoint, "fp32", out, report=quiet)
    assert first.model.version == second.model.version
    assert first.model.version == read_manifest(tiny_bundle_fp32).model.version
    assert [file.name for file in tmp_path.iterdir()] == ["bundle"]
    assert (
        json.loads((out / "manifest.json").read_text())["model"]["version"] == second.model.version
    )
