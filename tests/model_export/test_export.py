from __future__ import annotations

import copy
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnx.numpy_helper import to_array
from onnxruntime.quantization import QuantType, quantize_dynamic
from tokenizers.processors import TemplateProcessing

from model_export import export, rowwise_int8
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.errors import (
    ExportError,
    ParityFailed,
    QuantizationFailed,
    RelevanceReversed,
    UnsupportedCheckpoint,
)
from model_export.export import export_bundle
from model_export.fit_calibration import fit_score_calibration
from model_export.options import ExportOptions
from model_export.pairs import LabelledPair
from model_export.to_onnx import convert
from service.domain import Ad
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import read_manifest
from service.scoring.calibration import Platt
from service.scoring.golden_pairs import self_test
from service.scoring.head import margin
from tests.export_options import quick
from tests.tiny_models import WORDS, write_bert


@pytest.fixture
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), None, None)


def quiet(_: str) -> None:
    pass


def test_the_manifest_states_what_was_measured(tiny_bundle_int8: Path) -> None:
    manifest = read_manifest(tiny_bundle_int8)
    assert manifest.precision.weights == "int8"
    assert manifest.precision.recipe == rowwise_int8.recipe_name(7)
    assert set(manifest.parity) == {"fp32", "int8", "tolerances"}
    assert manifest.parity["fp32"]["worst_logit"] < 1e-4
    assert manifest.parity["int8"]["batch_spread"] == 0
    assert manifest.parity["int8"]["mean_score"] > 0, "int8 without any difference was not int8"
    assert sum(manifest.score_histogram) == pytest.approx(1, abs=0.01)
    assert set(manifest.inputs.names) == {"input_ids", "token_type_ids", "attention_mask"}


def test_a_two_class_and_a_graded_checkpoint_become_bundles_too(tmp_path: Path) -> None:
    for n_labels, relevant, grades in ((2, "LABEL_1", None), (4, None, "0,1,2,3")):
        folder = write_bert(tmp_path / f"labels-{n_labels}", n_labels=n_labels)
        out = tmp_path / f"bundle-{n_labels}"
        checkpoint = load_checkpoint(str(folder), relevant, None, grades=grades)
        export_bundle(checkpoint, quick("fp32"), out, report=quiet)
        bundle = open_bundle(out)
        assert self_test(bundle) < 1e-3
        pairs = bundle.encode("red", [Ad("1", text="shoe"), Ad("2", text="bag")])
        scores = bundle.to_scores(bundle.model.logits(pairs))
        assert ((scores > 0) & (scores < 1)).all()


def reverse_a_matrix(graph: onnx.ModelProto) -> None:
    """Weights of one matrix in the wrong order: loads, runs, and scores wrongly."""
    tensor = next(t for t in graph.graph.initializer if len(t.dims) == 2 and t.dims[0] == 32)
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(values[::-1].copy(), tensor.name))


def forget_the_segments(graph: onnx.ModelProto) -> None:
    """Query and ad look alike to the model, as when zero segment ids are fed."""
    tensor = next(t for t in graph.graph.initializer if "token_type" in t.name)
    values = numpy_helper.to_array(tensor)
    tensor.CopyFrom(numpy_helper.from_array(np.repeat(values[:1], 2, axis=0), tensor.name))


@pytest.mark.parametrize("damage", [reverse_a_matrix, forget_the_segments])
def test_a_graph_that_scores_otherwise_is_refused_with_its_worst_pairs_and_nothing_is_written(
    checkpoint: Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[onnx.ModelProto], None],
) -> None:
    def damaged(*arguments: Any, for_gpu: bool) -> onnx.ModelProto:  # noqa: ANN401  # passed through
        graph = convert(*arguments, for_gpu=for_gpu)
        damage(graph)
        return graph

    monkeypatch.setattr(export, "convert", damaged)
    with pytest.raises(ParityFailed, match="worst_logit is") as caught:
        export_bundle(checkpoint, quick("int8"), tmp_path / "out", report=quiet)
    assert "torch against fp32" in str(caught.value)
    assert "worst pairs" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def per_tensor_dynamic(graph: onnx.ModelProto, folder: Path) -> int:
    """The int8 recipe that everybody ships, in place of ours."""
    plain, usual = folder / "plain.onnx", folder / "usual.onnx"
    onnx.save(graph, plain)
    extra = {"DefaultTensorType": onnx.TensorProto.FLOAT}
    quantize_dynamic(plain, usual, weight_type=QuantType.QInt8, extra_options=extra)
    graph.CopyFrom(onnx.load(usual))
    return 1


def test_a_recipe_whose_scores_depend_on_the_batch_is_refused_and_the_old_bundle_stays(
    checkpoint: Checkpoint,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "bundle"
    old = export_bundle(checkpoint, quick("fp32"), out, report=quiet)
    scratch = tmp_path_factory.mktemp("recipe")
    monkeypatch.setattr(
        export, "quantize_rowwise", lambda graph, _bits: per_tensor_dynamic(graph, scratch)
    )
    with pytest.raises(ParityFailed, match="torch against int8") as caught:
        export_bundle(checkpoint, quick("int8"), out, report=quiet)
    assert "batch_spread is" in str(caught.value)
    assert read_manifest(out) == old
    assert [file.name for file in tmp_path.iterdir()] == ["bundle"]


def test_a_tokenizer_that_cannot_join_two_texts_is_refused(
    checkpoint: Checkpoint, tiny_checkpoint: Path, tmp_path: Path
) -> None:
    other = load_checkpoint(str(tiny_checkpoint), None, None)
    other.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $B [SEP] $A [SEP]",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )  # fmt: skip
    assert other.tokenizer is not checkpoint.tokenizer
    with pytest.raises(UnsupportedCheckpoint, match="second text before the first"):
        export_bundle(other, quick("fp32"), tmp_path / "out", report=quiet)


def test_without_labelled_pairs_the_calibration_of_the_checkpoint_is_served(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    stored = Platt(slope=0.5, intercept=-1.0, fitted_on="dev")
    calibrated = replace(checkpoint, calibration=stored)
    manifest = export_bundle(calibrated, quick("fp32"), tmp_path / "out", report=quiet)
    assert manifest.score_calibration == stored
    assert manifest.quality == {}


def test_a_model_without_a_calibration_is_warned_of_and_one_with_it_is_not(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    stored = Platt(slope=0.5, intercept=-1.0, fitted_on="dev")
    for name, calibration in (("plain", None), ("calibrated", stored)):
        lines: list[str] = []
        model = replace(checkpoint, calibration=calibration)
        export_bundle(model, quick("fp32"), tmp_path / name, report=lines.append)
        warned = any(line.startswith("warning: scores are not calibrated") for line in lines)
        assert warned is (calibration is None)


def test_a_model_that_does_not_order_the_labelled_pairs_is_refused_before_it_is_converted(
    checkpoint: Checkpoint, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    pairs = labelled_by(tiny_bundle_fp32, n_pairs=60)
    reversed_ = [replace(pair, label=1 - pair.label) for pair in pairs]
    steps: list[str] = []
    with pytest.raises(RelevanceReversed, match=r"does not order these pairs .* AUC 0\.[01]"):
        export_bundle(checkpoint, quick("fp32"), tmp_path / "out", reversed_, report=steps.append)
    assert not any(step.startswith("[") for step in steps)
    assert list(tmp_path.iterdir()) == []


def test_too_few_labelled_pairs_stop_the_export_before_it_starts(
    checkpoint: Checkpoint, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    pairs = labelled_by(tiny_bundle_fp32, n_pairs=12)
    steps: list[str] = []
    with pytest.raises(ExportError, match="at least 10 pairs of each class"):
        export_bundle(checkpoint, quick("fp32"), tmp_path / "out", pairs, report=steps.append)
    assert steps == [], "refused before the long work, not after it"
    assert list(tmp_path.iterdir()) == []


def test_each_step_is_reported_in_order_with_its_figures(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    lines: list[str] = []
    export_bundle(checkpoint, quick("int8"), tmp_path / "out", report=lines.append)
    steps = [line[:5] for line in lines if line.startswith("[")]
    assert steps == [f"[{n}/5]" for n in range(1, 6)]
    assert sum("batch_spread 0" in line for line in lines) == 2
    assert any("quantize 12 products" in line for line in lines)


def test_a_folder_that_is_no_bundle_is_never_overwritten(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    (tmp_path / "precious.txt").write_text("mine", encoding="utf-8")
    steps: list[str] = []
    with pytest.raises(ExportError, match="is not a bundle"):
        export_bundle(checkpoint, quick("fp32"), tmp_path, report=steps.append)
    assert steps == [], "refused before the long work, not after it"
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


def log_loss_of_a_constant(pairs: list[LabelledPair]) -> float:
    share = float(np.mean([pair.label for pair in pairs]))
    return float(-(share * np.log(share) + (1 - share) * np.log(1 - share)))


def test_labelled_pairs_give_calibration_quality_and_another_version(
    checkpoint: Checkpoint, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    pairs = labelled_by(tiny_bundle_int8)
    out = tmp_path / "calibrated"
    lines: list[str] = []
    manifest = export_bundle(checkpoint, quick("int8"), out, pairs, report=lines.append)
    why = lines[next(i for i, line in enumerate(lines) if line.startswith("[4/5]")) + 1]
    assert "200 pairs of 1 query: " in why
    plain = read_manifest(tiny_bundle_int8)
    bundle = open_bundle(out)
    encoded = [bundle.encode(pair.query, [pair.ad])[0] for pair in pairs]
    fit = fit_score_calibration(
        margin(bundle.model.logits(encoded), manifest.head),
        [pair.label for pair in pairs],
        [pair.query for pair in pairs],
        "200 pairs given at export",
    )
    assert manifest.score_calibration == fit.calibration
    assert manifest.quality["served"]["auc"] > 0.8
    assert manifest.quality["served"]["pairs"] == 200
    assert manifest.parity["int8"]["n_pairs"] == plain.parity["int8"]["n_pairs"] + 200
    assert manifest.quality["served"]["log_loss"] < log_loss_of_a_constant(pairs)
    assert abs(manifest.quality["torch"]["auc"] - manifest.quality["served"]["auc"]) < 0.02
    assert manifest.model.version != plain.model.version
    assert manifest.files_sha256["model.onnx"] == plain.files_sha256["model.onnx"]


def test_the_same_export_twice_is_the_same_version_and_replaces_the_bundle(
    checkpoint: Checkpoint, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    first = export_bundle(checkpoint, quick("fp32"), out, report=quiet)
    second = export_bundle(checkpoint, quick("fp32"), out, report=quiet)
    assert first.model.version == second.model.version
    assert first.model.version == read_manifest(tiny_bundle_fp32).model.version
    assert [file.name for file in tmp_path.iterdir()] == ["bundle"]
    assert (
        json.loads((out / "manifest.json").read_text())["model"]["version"] == second.model.version
    )


def test_where_int8_is_past_a_tolerance_fp32_can_be_served_and_says_so(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    lines: list[str] = []
    options = quick("int8", fall_back=True, tolerances={"mean_score": 0.0})
    manifest = export_bundle(checkpoint, options, tmp_path / "out", report=lines.append)
    assert manifest.precision.weights == manifest.precision.recipe == "fp32"
    assert re.match("int8 was asked for and refused: .*mean_score is", manifest.precision.note)
    assert any("fall back to fp32" in line for line in lines)
    assert not any("what to do" in line for line in lines), "it is done"
    assert self_test(open_bundle(tmp_path / "out")) < 1e-5
    with pytest.raises(ParityFailed, match=r"(?s)mean_score.*what to do:.*--fallback fp32"):
        export_bundle(checkpoint, replace(options, fall_back=False), tmp_path / "no", report=quiet)
    assert not (tmp_path / "no").exists()


def test_a_graph_that_the_recipe_cannot_rewrite_falls_back_too(
    checkpoint: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise QuantizationFailed("the graph has no MatMul")

    monkeypatch.setattr(export, "quantize_rowwise", refuse)
    options = quick("int8", fall_back=True)
    manifest = export_bundle(checkpoint, options, tmp_path / "out", report=quiet)
    assert manifest.precision.weights == "fp32"
    assert "no MatMul" in manifest.precision.note


def test_fp16_is_fused_for_a_gpu_and_keeps_its_inputs_and_logits(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    options = quick("fp16", target="cuda")
    manifest = export_bundle(checkpoint, options, tmp_path / "out", report=quiet)
    assert (manifest.precision.weights, manifest.precision.target) == ("fp16", "cuda")
    assert 0 < manifest.parity["fp16"]["worst_logit"] < 0.1
    graph = onnx.load(tmp_path / "out" / "model.onnx").graph
    floats = {t.data_type for t in graph.initializer} & {TensorProto.FLOAT, TensorProto.FLOAT16}
    assert floats == {TensorProto.FLOAT16}
    assert "Attention" in {node.op_type for node in graph.node}
    assert graph.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    self_test(open_bundle(tmp_path / "out"))


@pytest.mark.parametrize(("target", "largest"), [("avx2", 63), ("avx512", 63), ("vnni", 127)])
def test_the_target_decides_how_many_bits_weights_have(
    checkpoint: Checkpoint, tmp_path: Path, target: str, largest: int
) -> None:
    options = quick("int8", target=target)
    manifest = export_bundle(checkpoint, options, tmp_path / "out", report=quiet)
    assert manifest.precision.target == target
    assert manifest.precision.recipe.endswith(str(largest.bit_length() + 1))
    tensors = onnx.load(tmp_path / "out" / "model.onnx").graph.initializer
    weights = [to_array(t) for t in tensors if t.data_type == TensorProto.INT8]
    assert max(int(np.abs(weight).max()) for weight in weights) == largest


def test_the_same_export_in_another_process_gives_the_same_bytes(
    tiny_checkpoint: Path, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    command = [sys.executable, "-m", "model_export", "export", "--checkpoint", str(tiny_checkpoint)]
    done = subprocess.run(
        [*command, "--out", str(out), "--no-latency"],
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    names = sorted(file.name for file in tiny_bundle_int8.iterdir())
    assert names == sorted(file.name for file in out.iterdir())
    assert {"report.html", "report.json"} <= set(names)
    for name in names:
        assert (out / name).read_bytes() == (tiny_bundle_int8 / name).read_bytes(), name


def test_notes_of_the_checkpoint_are_told(checkpoint: Checkpoint, tmp_path: Path) -> None:
    lines: list[str] = []
    noted = replace(checkpoint, notes=("its config names an activation",))
    export_bundle(noted, quick("fp32"), tmp_path / "out", report=lines.append)
    assert lines[0] == "note: its config names an activation"


@pytest.mark.usefixtures("drawn")
def test_the_report_shows_the_labelled_pairs_and_every_stage(
    checkpoint: Checkpoint, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    pairs = labelled_by(tiny_bundle_int8)
    export_bundle(checkpoint, ExportOptions(), tmp_path / "out", pairs, report=quiet)
    document = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))
    stages = {row["stage"] for row in document["parity"]}
    assert stages == {"torch against fp32", "torch against int8"}
    judged = {row["figure"] for row in document["parity"]}
    assert {"auc_loss", "ndcg_loss", "batch_spread"} <= judged
    assert {row["model"] for row in document["latency"]["rows"]} == {"fp32", "int8"}
    assert "<svg" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_a_model_that_gives_all_pairs_one_score_is_refused_for_that(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    constant = copy.deepcopy(checkpoint)
    constant.model.classifier.weight.data.zero_()
    with pytest.raises(UnsupportedCheckpoint, match="every pair the same score"):
        export_bundle(constant, quick("int8"), tmp_path / "out", report=quiet)


def test_a_tokenizer_with_more_segments_than_the_model_is_refused(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    other = copy.deepcopy(checkpoint)
    other.tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:3 [SEP]:3",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    with pytest.raises(UnsupportedCheckpoint, match="cannot read what its tokenizer makes"):
        export_bundle(other, quick("int8"), tmp_path / "out", report=quiet)


def test_golden_pairs_reach_words_from_all_over_the_vocabulary(tiny_bundle_int8: Path) -> None:
    bundle = open_bundle(tiny_bundle_int8)
    rows = (tiny_bundle_int8 / "golden_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    texts = " ".join(row["query"] + " " + row["ad_text"] for row in map(json.loads, rows)).split()
    assert set(WORDS) <= set(texts)
    assert bundle.manifest.golden.n_pairs == len(rows) == 32
