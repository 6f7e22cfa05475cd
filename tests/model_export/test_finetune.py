from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from model_export.adapter import WEIGHTS_FILE, read_facts
from model_export.base_weights import weights_sha256
from model_export.checkpoint import CALIBRATION_FILE
from model_export.errors import BadPairsFile, BaseWeightsMissing
from model_export.finetune import REPORT_FILE, FinetuneReport, finetune
from model_export.recipe import FinetuneRecipe
from service.scoring.ad_template import AdTemplate
from tests.model_export.tiny_bert import write_pairs, write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

QUICK = FinetuneRecipe(
    imitation_pairs=32,
    epochs=2,
    lora_rank=4,
    lora_alpha=8,
    max_pair_tokens=16,
    ad_template=AdTemplate(fields=("title",)),
)


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


def test_bad_input_stops_the_run_before_any_training(tmp_path: Path, base: Path) -> None:
    with pytest.raises(BadPairsFile):
        _run(base, tmp_path / "absent.jsonl", tmp_path / "out")
    with pytest.raises(BaseWeightsMissing):
        _run(tmp_path / "absent", write_pairs(tmp_path / "pairs.jsonl"), tmp_path / "out")
    assert not (tmp_path / "out").exists()
