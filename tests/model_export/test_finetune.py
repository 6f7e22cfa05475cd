from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
import pytest
from safetensors.torch import load_file

from model_export.adapter import WEIGHTS_FILE, read_facts
from model_export.base_weights import weights_sha256
from model_export.checkpoint import CALIBRATION_FILE, load_checkpoint
from model_export.errors import BadPairsFile, BaseWeightsMissing, UnsupportedCheckpoint
from model_export.export import export_bundle
from model_export.finetune import FinetuneReport, finetune
from model_export.options import ExportOptions
from model_export.recipe import REPORT_FILE, FinetuneRecipe, recipe_for
from model_export.reference_logits import load_original, pair_encoder, reference_logits
from model_export.to_onnx import convert
from service.scoring.ad_template import AdTemplate
from service.scoring.bulk import bulk_logits
from service.scoring.head import margin
from service.scoring.onnx_model import OnnxModel
from tests.model_export.tiny_bert import WORDS, write_graded_pairs, write_pairs, write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

    from model_export.recipe import Approach, HeadName, LossName
    from model_export.sentence_embedding import Pooling

QUICK = FinetuneRecipe(
    imitation_pairs=32,
    epochs=2,
    lora_rank=4,
    lora_alpha=8,
    max_pair_tokens=16,
    ad_template=AdTemplate(fields=("title",)),
)
TOY: dict[str, Any] = {"max_pair_tokens": 16, "batch_pairs": 10, "epochs": 6}
RATES = {"full": 2e-3, "features": 3e-2, "lora": 1e-2}


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write_tiny_base(tmp_path / "base")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path / "pairs.jsonl")


def _run(base: Path, pairs: Path, out: Path, recipe: FinetuneRecipe = QUICK) -> FinetuneReport:
    return finetune([pairs], [pairs], str(base), out, recipe, show_progress=False)


def test_the_adapter_says_how_it_must_be_used(tmp_path: Path, base: Path, pairs: Path) -> None:
    _run(base, pairs, tmp_path / "out")
    facts = read_facts(tmp_path / "out")
    assert facts.base_sha256 == weights_sha256(base)
    assert facts.ad_template == QUICK.ad_template
    assert facts.max_pair_tokens == QUICK.max_pair_tokens


def test_the_report_on_disk_is_the_one_returned(tmp_path: Path, base: Path, pairs: Path) -> None:
    report = _run(base, pairs, tmp_path / "out")
    stored = json.loads((tmp_path / "out" / REPORT_FILE).read_text(encoding="utf-8"))
    assert stored["quality"]["pairs.jsonl"]["auc"] == report.quality["pairs.jsonl"].auc
    assert stored["recipe"]["epochs"] == QUICK.epochs
    assert report.n_training_pairs == report.quality["pairs.jsonl"].pairs == 60


def test_the_same_seed_gives_the_same_adapter_and_another_seed_another(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        _run(base, pairs, tmp_path / name, replace(QUICK, seed=seed))
    a, b, c = ((tmp_path / name / WEIGHTS_FILE).read_bytes() for name in "abc")
    assert a == b
    assert a != c


def test_a_word_that_decides_is_learnt(tmp_path: Path, base: Path) -> None:
    pairs = write_pairs(tmp_path / "many.jsonl", n_repeats=4)
    recipe = replace(
        QUICK, imitation_pairs=0, teacher_share=0.0, epochs=15, learning_rate=1e-2, lora_rank=8
    )
    report = _run(base, pairs, tmp_path / "out", recipe)
    auc = report.quality["many.jsonl"].auc
    assert auc is not None
    assert auc > 0.9


def test_the_scores_are_calibrated_where_the_dev_pairs_suffice(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    recipe = replace(QUICK, imitation_pairs=0, teacher_share=0.0, epochs=15, learning_rate=1e-2)
    _run(base, pairs, tmp_path / "out", recipe)
    stored = json.loads((tmp_path / "out" / CALIBRATION_FILE).read_text(encoding="utf-8"))
    assert stored["fitted_on"] == "pairs.jsonl"


def test_too_few_dev_pairs_leave_the_scores_uncalibrated(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(pairs.read_text(encoding="utf-8").split("\n")[:3]), encoding="utf-8")
    finetune([pairs], [few], str(base), tmp_path / "out", QUICK, show_progress=False)
    assert not (tmp_path / "out" / CALIBRATION_FILE).exists()


@pytest.mark.parametrize(
    ("approach", "head", "loss"),
    [
        ("full", "logit", "bce"),
        ("full", "logit", "mse"),
        ("full", "classes", "cross-entropy"),
        ("full", "grades", "cross-entropy"),
        ("full", "logit", "ranknet"),
        ("full", "logit", "listnet"),
        ("full", "logit", "lambda"),
        ("lora", "classes", "cross-entropy"),
        ("lora", "grades", "cross-entropy"),
        ("lora", "logit", "lambda"),
    ],
)
def test_each_head_and_loss_learns_ranks_and_serves_what_torch_says(
    tmp_path: Path, base: Path, approach: Approach, head: HeadName, loss: LossName
) -> None:
    pairs = write_graded_pairs(tmp_path / "graded.jsonl")
    recipe = recipe_for(approach, head, loss=loss, learning_rate=RATES[approach], **TOY)
    report = _run(base, pairs, tmp_path / "out", recipe)
    assert report.epochs[-1]["loss"] < report.epochs[0]["loss"]
    best = max(epoch["figure"] for epoch in report.epochs)
    quality = report.quality["graded.jsonl"]
    assert (quality.ndcg_at_10 if recipe.ranks else quality.auc) == pytest.approx(best, abs=1e-6)
    assert best > 0.8
    checkpoint = load_original(str(tmp_path / "out"))
    assert checkpoint.max_length_tokens == 16
    assert checkpoint.head.n_logits == {"logit": 1, "classes": 2, "grades": 3}[head]
    assert checkpoint.head.kind == ("ordinal" if head == "grades" else "binary")
    encoded = [pair_encoder(checkpoint).encode("red lamp", ["office " + word])[0] for word in WORDS]
    file = tmp_path / "model.onnx"
    onnx.save(convert(checkpoint.model, checkpoint.tokenizer), file)
    served = OnnxModel(file, n_logits=checkpoint.head.n_logits, pad_id=checkpoint.pad_id)
    logits = bulk_logits(served, encoded, threads=1)
    np.testing.assert_allclose(logits, reference_logits(checkpoint, encoded), atol=1e-5)
    scores = dict(zip(WORDS, margin(logits, checkpoint.head), strict=True))
    assert scores["shoes"] > scores["desk"]
    assert scores["lamp"] > scores["sofa"]


@pytest.mark.parametrize("pooling", ["cls", "mean", "cat4"])
def test_what_was_pooled_in_training_is_what_the_bundle_computes_in_any_company(
    tmp_path: Path, pooling: Pooling
) -> None:
    base = write_tiny_base(tmp_path / "base", n_layers=4 if pooling == "cat4" else 2)
    pairs = write_graded_pairs(tmp_path / "graded.jsonl")
    recipe = recipe_for(
        "features", pooling=pooling, learning_rate=RATES["features"], **{**TOY, "epochs": 20}
    )
    report = _run(base, pairs, tmp_path / "out", recipe)
    assert report.epochs[-1]["loss"] < report.epochs[0]["loss"]
    quality = report.quality["graded.jsonl"]
    assert quality.auc is not None
    assert quality.auc > 0.7
    checkpoint = load_checkpoint(str(tmp_path / "out"), None, None)
    before = load_file(base / "model.safetensors")
    after = checkpoint.model.encoder.state_dict()
    assert all((before[name] == value).all() for name, value in after.items()), "frozen"
    # The toy's scores lie so close together that rounding swaps some.
    options = ExportOptions("fp32", tolerances={"rank_agreement": 0.99}, with_latency=False)
    manifest = export_bundle(checkpoint, options, tmp_path / "bundle", report=lambda _: None)
    assert manifest.parity["fp32"]["batch_spread"] == 0


def test_a_pooling_of_more_layers_than_the_base_has_is_refused(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    recipe = recipe_for("features", pooling="cat4", **TOY)
    with pytest.raises(UnsupportedCheckpoint, match="has 2 layers, and pooling cat4 reads"):
        _run(base, pairs, tmp_path / "out", recipe)


@pytest.mark.parametrize(("loss", "figure"), [("bce", "AUC"), ("ranknet", "NDCG@10")])
def test_a_model_worse_than_chance_is_said_to_have_learnt_nothing(
    tmp_path: Path, base: Path, pairs: Path, loss: LossName, figure: str
) -> None:
    rows = [json.loads(line) for line in pairs.read_text(encoding="utf-8").splitlines()]
    dev = tmp_path / "dev.jsonl"
    dev.write_text(
        "".join(json.dumps({**row, "label": 1 - row["label"]}) + "\n" for row in rows),
        encoding="utf-8",
    )
    told: list[str] = []
    recipe = recipe_for("full", loss=loss, learning_rate=RATES["full"], keep="last", **TOY)
    report = finetune([pairs], [dev], str(base), tmp_path / "out", recipe,
                      show_progress=False, tell=told.append)  # fmt: skip
    assert report.quality["dev.jsonl"].auc is not None
    assert report.quality["dev.jsonl"].auc < 0.3
    nothing, uncalibrated = told[-2:]
    assert nothing.startswith(f"warning: the model has learnt nothing: dev {figure} 0.")
    assert nothing == f"warning: {report.learnt_nothing}"
    assert "do not grow with relevance" in uncalibrated
    assert not any("check which label" in line for line in told)


def test_a_pooled_head_can_train_with_its_encoder(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base", n_layers=4)
    pairs = write_graded_pairs(tmp_path / "graded.jsonl")
    recipe = recipe_for("full", "grades", pooling="cat4", learning_rate=2e-3, **TOY)
    report = _run(base, pairs, tmp_path / "out", recipe)
    assert report.labels == ("grade_0", "grade_1", "grade_2")
    before = load_file(base / "model.safetensors")
    checkpoint = load_checkpoint(str(tmp_path / "out"), None, None)
    after = checkpoint.model.encoder.state_dict()
    assert any((before[name] != value).any() for name, value in after.items())
    assert checkpoint.head.kind == "ordinal"


def test_the_best_epoch_is_kept_and_patience_ends_the_training(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    recipe = recipe_for("full", learning_rate=5e-3, **{**TOY, "epochs": 20}, patience=3)
    report = _run(base, pairs, tmp_path / "out", recipe)
    assert len(report.epochs) < 20
    best = max(report.epochs, key=lambda epoch: epoch["figure"])
    assert report.kept_epoch == best["epoch"] == report.epochs[-1]["epoch"] - 3
    assert report.quality["pairs.jsonl"].auc == pytest.approx(best["figure"], abs=1e-6)
    last = _run(base, pairs, tmp_path / "last", recipe_for("full", keep="last", **TOY))
    assert last.kept_epoch == TOY["epochs"]


def test_hard_negatives_join_the_training_pairs(tmp_path: Path, base: Path) -> None:
    rows = [
        {"query": query, "title": f"{query} {word} {other}", "label": int(word == "lamp")}
        for query in ("red", "blue")
        for word in WORDS[3:8]
        for other in WORDS[3:8]
    ]
    for row in rows[25:30]:  # ads of another query in which "red" stands
        row["title"] = f"red {row['title']}"
    train, dev = tmp_path / "train.jsonl", tmp_path / "dev.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    dev_rows = [{**row, "query": "blue"} for row in rows[:25]]
    dev.write_text("".join(json.dumps(row) + "\n" for row in dev_rows), encoding="utf-8")
    told: list[str] = []
    report = finetune([train], [dev], str(base), tmp_path / "out",
                      recipe_for("features", hard_negatives=3, **TOY),
                      show_progress=False, tell=told.append)  # fmt: skip
    assert report.n_hard_negatives == 3, "for the query that is not held out"
    assert report.n_training_pairs == 53
    assert any("1 queries are in the training and in the dev pairs" in line for line in told)


@pytest.mark.parametrize("approach", ["lora", "full", "features"])
def test_files_can_be_read_by_all_whom_the_umask_lets(
    tmp_path: Path, base: Path, pairs: Path, approach: Approach
) -> None:
    usual = tmp_path / "usual"
    usual.touch()
    recipe = recipe_for(approach, imitation_pairs=0, teacher_share=0.0, **{**TOY, "epochs": 1})
    _run(base, pairs, tmp_path / "out", recipe)
    for file in (tmp_path / "out").iterdir():
        assert file.stat().st_mode == usual.stat().st_mode, file.name
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        ["base", "out", "pairs.jsonl", "usual"]
    )


def test_a_model_that_was_there_before_is_replaced(tmp_path: Path, base: Path, pairs: Path) -> None:
    _run(base, pairs, tmp_path / "out", recipe_for("full", **{**TOY, "epochs": 1}))
    (tmp_path / "out" / "README.md").write_text("a model card", encoding="utf-8")
    _run(base, pairs, tmp_path / "out", replace(QUICK, imitation_pairs=0))
    assert not (tmp_path / "out" / "config.json").exists()
    assert read_facts(tmp_path / "out").labels == ()
    assert (tmp_path / "out" / "README.md").is_file(), "no part of the model"


def test_labels_of_one_kind_are_refused_before_any_training(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    rows = pairs.read_text(encoding="utf-8").replace('"label": 0', '"label": 1')
    one = tmp_path / "one.jsonl"
    one.write_text(rows, encoding="utf-8")
    with pytest.raises(BadPairsFile, match=r"one.jsonl: all 60 pairs have the relevance 1"):
        _run(base, one, tmp_path / "out")
    with pytest.raises(BadPairsFile, match="have no 'grade'"):
        _run(base, pairs, tmp_path / "out", recipe_for("full", "grades"))
    assert not list(tmp_path.glob("out*"))


def test_more_tokens_than_the_base_can_read_are_refused(
    tmp_path: Path, base: Path, pairs: Path
) -> None:
    with pytest.raises(UnsupportedCheckpoint, match="reads at most 32 tokens"):
        _run(base, pairs, tmp_path / "out", recipe_for("full"))
    assert not (tmp_path / "out").exists()


def test_bad_input_stops_the_run_before_any_training(tmp_path: Path, base: Path) -> None:
    with pytest.raises(BadPairsFile):
        _run(base, tmp_path / "absent.jsonl", tmp_path / "out")
    with pytest.raises(BaseWeightsMissing):
        _run(tmp_path / "absent", write_pairs(tmp_path / "pairs.jsonl"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
