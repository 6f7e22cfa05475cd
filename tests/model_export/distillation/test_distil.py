from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from model_export.checkpoint import Checkpoint, load_checkpoint, with_max_length
from model_export.distillation import distil as distil_module
from model_export.distillation import trainer as trainer_module
from model_export.distillation.distil import BEST, TRAINING, Folders, distil
from model_export.distillation.recipe import REPORT_FILE, DistilRecipe
from model_export.distillation.report import DistilReport
from model_export.distillation.sources import Sources
from model_export.errors import ExportError
from model_export.evaluate import Quality, judge
from model_export.evaluation.models import score_with_checkpoint
from model_export.facts_file import FACTS_FILE
from model_export.finetuning.run_folder import last_whole_checkpoint, run_folder
from model_export.pairs import LabelledPair
from model_export.weight_delta import WEIGHTS_FILE
from service.domain import Ad
from service.scoring.ad_template import AdTemplate
from tests.tiny_models import WORDS, write_bert

QUICK = DistilRecipe(n_layers=2, epochs=3, learning_rate=3e-3, batch_pairs=16, label_weight=0.1)

ADS = [f"{WORDS[n % 15]} {WORDS[(7 * n + 3) % 15]}" for n in range(30)]
SOURCES = Sources({(q, ad): 1.0 if "shoe" in ad else None for q in ("red", "bag") for ad in ADS})
DEV = {
    name: [LabelledPair(query, Ad("1", text=ad), float("shoe" in ad)) for ad in ADS]
    for name, query in (("a.jsonl", "long lamp"), ("b.jsonl", "cheap chair"))
}


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = write_bert(tmp_path_factory.mktemp("teacher") / "t", num_hidden_layers=4)
    return with_max_length(load_checkpoint(str(folder), None, None), 16)


def run(
    teacher: Checkpoint, folder: Path, recipe: DistilRecipe = QUICK, *, resume: bool = False
) -> DistilReport:
    folders = Folders(folder / "student", folder / "cache")
    return distil(teacher, SOURCES, DEV, folders, recipe, resume=resume, show_progress=False)


def weights(folder: Path) -> dict[str, Any]:
    return load_file(folder / "student" / "model.safetensors")


def test_the_student_is_a_checkpoint_with_fewer_layers_that_reads_as_much_as_its_teacher(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    report = run(teacher, tmp_path)
    student = load_checkpoint(str(tmp_path / "student"), None, None)
    assert student.model.config.num_hidden_layers == 2
    assert student.max_length_tokens == teacher.max_length_tokens == 16
    assert student.head.n_logits == 1
    assert report.layers == (0, 3)
    assert report.n_labelled == 2 * sum("shoe" in ad for ad in set(ADS))
    assert report.n_labelled + report.n_unlabelled == 2 * len(set(ADS))
    stored = json.loads((tmp_path / "student" / REPORT_FILE).read_text(encoding="utf-8"))
    assert stored["epochs"][-1]["mean_auc"] == report.epochs[-1].mean_auc
    assert {path.name for path in tmp_path.iterdir()} == {"student", "cache"}


def test_the_epoch_that_is_kept_is_the_best_on_the_dev_pairs(
    teacher: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    aucs = {1: (0.6, 0.5), 2: (0.9, 0.7), 3: (0.95, 0.6)}  # the mean of the files is highest at 2

    def train(student: Any, *given: Any, **_: object) -> None:  # noqa: ANN401
        on_epoch = given[-1]
        for epoch, values in aucs.items():
            student.classifier.bias.data.fill_(epoch)
            on_epoch(
                student,
                epoch,
                {n: Quality(v, None, 1, 0, 0) for n, v in zip("ab", values, strict=True)},
            )

    monkeypatch.setattr(distil_module, "train_student", train)
    report = run(teacher, tmp_path)
    assert [epoch.mean_auc for epoch in report.epochs] == pytest.approx([0.55, 0.8, 0.775])
    assert report.best == report.epochs[1]
    assert weights(tmp_path)["classifier.bias"].item() == 2
    stored = json.loads((tmp_path / "student" / REPORT_FILE).read_text(encoding="utf-8"))
    assert len(stored["epochs"]) == 3, "though the last one was not kept"


def test_an_older_model_is_replaced_whole_and_not_before_the_training_is_over(
    teacher: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "student"
    out.mkdir()
    older = {WEIGHTS_FILE, FACTS_FILE, "score_calibration.json", "pack_report.json"}
    for name in older:
        (out / name).write_text("old", encoding="utf-8")

    def train(student: Any, *given: Any, is_stopped: bool, **_: object) -> None:  # noqa: ANN401
        given[-1](student, 1, {"a": Quality(0.7, None, 1, 0, 0)})
        if is_stopped:
            raise KeyboardInterrupt

    monkeypatch.setattr(distil_module, "train_student", partial(train, is_stopped=True))
    with pytest.raises(KeyboardInterrupt):
        run(teacher, tmp_path)
    assert {file.name for file in out.iterdir()} == older
    assert load_checkpoint(str(run_folder(out) / BEST), None, None)
    monkeypatch.setattr(distil_module, "train_student", partial(train, is_stopped=False))
    run(teacher, tmp_path)
    assert not run_folder(out).exists()
    assert older - {file.name for file in out.iterdir()} == older - {FACTS_FILE}
    assert "old" not in (out / FACTS_FILE).read_text(encoding="utf-8")


def test_a_student_worse_than_chance_is_said_to_have_learnt_nothing(
    teacher: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for auc, is_said in ((0.26, True), (0.74, False)):

        def train(student: Any, *given: Any, auc: float = auc, **_: object) -> None:  # noqa: ANN401
            given[-1](student, 1, {"a": Quality(auc, None, 1, 0, 0)})

        monkeypatch.setattr(distil_module, "train_student", train)
        told: list[str] = []
        folders = Folders(tmp_path / str(auc), tmp_path / "cache")
        distil(teacher, SOURCES, DEV, folders, QUICK, show_progress=False, tell=told.append)
        assert ("learnt nothing: dev AUC 0.26" in told[-1]) is is_said


def test_the_figures_of_an_epoch_are_those_of_the_checkpoint(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    report = run(teacher, tmp_path)
    assert report.best is not None
    for name, pairs in DEV.items():
        scores = score_with_checkpoint(str(tmp_path / "student"), pairs).scores
        own = judge(pairs, scores)
        # bfloat16, where the machine is fast at it, may swap near neighbours.
        assert own.auc == pytest.approx(report.best.quality[name].auc, abs=0.02)
        assert own.log_loss == pytest.approx(report.best.quality[name].log_loss, abs=0.02)


def test_the_same_seed_gives_the_same_student_and_the_word_vectors_stay(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        run(teacher, tmp_path / name, replace(QUICK, epochs=1, seed=seed))
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert all((b[name] == tensor).all() for name, tensor in a.items())
    assert not all((c[name] == tensor).all() for name, tensor in a.items())
    embeddings = "bert.embeddings.word_embeddings.weight"
    before = teacher.model.state_dict()
    assert (a[embeddings] == before[embeddings]).all()
    head = "classifier.weight"
    assert (a[head] != before[head]).any()


def test_a_teacher_that_reads_ads_otherwise_is_refused(teacher: Checkpoint, tmp_path: Path) -> None:
    other = replace(teacher, template=AdTemplate(("title",)))
    with pytest.raises(ExportError, match="reads title of an ad"):
        run(other, tmp_path)
    assert not (tmp_path / "student").exists()


def test_each_epoch_is_told(teacher: Checkpoint, tmp_path: Path) -> None:
    told: list[str] = []
    folders = Folders(tmp_path / "student", tmp_path / "cache")
    distil(teacher, SOURCES, DEV, folders, QUICK, show_progress=False, tell=told.append)
    assert "unlabelled pairs; teacher: mean AUC " in told[0]
    assert [line.partition(":")[0] for line in told[1:]] == ["epoch 1", "epoch 2", "epoch 3"]
    assert told[1].endswith("kept")


def test_a_run_goes_on_from_an_earlier_student_and_says_so(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    first = run(teacher, tmp_path / "first", replace(QUICK, epochs=1, layers="first"))
    start = tmp_path / "first" / "student"
    folders = Folders(tmp_path / "student", tmp_path / "cache", start)
    still = replace(QUICK, epochs=1, learning_rate=1e-9)
    report = distil(teacher, SOURCES, DEV, folders, still, show_progress=False)
    assert report.layers == first.layers == (0, 1), "not the recipe's own spread"
    assert report.start is not None
    assert report.start["recipe"]["layers"] == "first"
    before = load_file(start / "model.safetensors")
    for name, tensor in weights(tmp_path).items():
        assert (tensor - before[name]).abs().max() < 1e-6


def test_a_start_that_is_no_student_is_refused(teacher: Checkpoint, tmp_path: Path) -> None:
    folders = Folders(tmp_path / "student", tmp_path / "cache", tmp_path)
    with pytest.raises(ExportError, match="is no student that distil wrote"):
        distil(teacher, SOURCES, DEV, folders, QUICK, show_progress=False)


def test_variations_of_the_given_pairs_join_them_without_labels(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    recipe = replace(QUICK, epochs=1, varied_pairs=50)  # and no share of the sampled pairs
    plain = run(teacher, tmp_path / "plain", replace(QUICK, epochs=1))
    varied = run(teacher, tmp_path / "varied", recipe)
    assert varied.n_labelled == plain.n_labelled
    assert varied.n_unlabelled > plain.n_unlabelled


class Killed(BaseException):
    """A run ends here, as if its process had been killed."""


@pytest.mark.parametrize("at_step", [3, 4, 6, 12])  # epochs have four
@pytest.mark.parametrize("how", [{}, {"lora_rank": 4}, {"hidden_weight": 1.0}])
def test_a_stopped_run_goes_on_to_the_same_student(
    teacher: Checkpoint,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_step: int,
    how: dict[str, Any],
) -> None:
    recipe = replace(QUICK, batch_pairs=8, **how)
    whole = run(teacher, tmp_path / "whole", recipe)
    save = trainer_module.DistilTrainer._save_checkpoint

    def save_and_be_killed(self: Any, *given: object) -> None:  # noqa: ANN401  # theirs
        save(self, *given)
        if self.state.global_step == at_step:
            raise Killed

    monkeypatch.setattr(trainer_module, "STATE_EVERY_S", 0.0)
    monkeypatch.setattr(trainer_module.DistilTrainer, "_save_checkpoint", save_and_be_killed)
    with pytest.raises(Killed):
        run(teacher, tmp_path / "stopped", recipe)
    monkeypatch.undo()
    out = tmp_path / "stopped" / "student"
    last = last_whole_checkpoint(run_folder(out) / TRAINING)
    assert last is not None
    assert last.name == f"checkpoint-{at_step}"
    with pytest.raises(ExportError, match="go on with --resume"):
        run(teacher, tmp_path / "stopped", recipe)
    with pytest.raises(ExportError, match="a training that differs in recipe:"):
        run(teacher, tmp_path / "stopped", replace(recipe, epochs=4), resume=True)
    resumed = run(teacher, tmp_path / "stopped", recipe, resume=True)
    assert [epoch.mean_auc for epoch in resumed.epochs] == [e.mean_auc for e in whole.epochs]
    assert resumed.best == whole.best
    one, other = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    assert all((other[name] == tensor).all() for name, tensor in one.items())
    assert not run_folder(out).exists()
