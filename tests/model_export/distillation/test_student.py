from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from model_export.distillation.student import PRUNABLE, make_student
from model_export.errors import UnsupportedCheckpoint
from model_export.pooled_classifier import PooledClassifier
from tests.tiny_models import write_model

IDS = torch.tensor([[5, 6, 7, 8, 9, 10]])


def teacher(
    folder: Path, family: str = "bert", n_labels: int = 1, n_layers: int | None = None
) -> Any:  # noqa: ANN401
    layers = {} if n_layers is None else {"num_hidden_layers": n_layers}
    write_model(folder / family, family, n_labels, **layers)
    return AutoModelForSequenceClassification.from_pretrained(folder / family).eval()


def logits(model: Any) -> torch.Tensor:  # noqa: ANN401
    with torch.inference_mode():
        result: torch.Tensor = model.eval()(input_ids=IDS).logits
    return result


@pytest.mark.parametrize("family", PRUNABLE)
def test_a_student_with_all_layers_is_its_teacher_and_with_fewer_it_is_not(
    tmp_path: Path, family: str
) -> None:
    model = teacher(tmp_path, family)
    before = logits(model)
    assert torch.equal(logits(make_student(model, (0, 1))), before)
    assert not torch.allclose(logits(make_student(model, (1,))), before)
    assert torch.equal(logits(model), before), "the teacher stays as it is"


def test_the_layers_are_the_chosen_ones_and_the_config_says_how_many(tmp_path: Path) -> None:
    model = teacher(tmp_path, n_layers=4)
    student = make_student(model, (0, 3))
    for kept, original in zip(student.bert.encoder.layer, (0, 3), strict=True):
        theirs = model.bert.encoder.layer[original].state_dict()
        assert all(torch.equal(w, theirs[name]) for name, w in kept.state_dict().items())
    assert student.config.num_hidden_layers == 2
    student.save_pretrained(tmp_path / "student")
    read = AutoModelForSequenceClassification.from_pretrained(tmp_path / "student")
    assert torch.equal(logits(read), logits(student))


def test_a_student_learns_though_a_merged_adapter_left_its_teacher_frozen(tmp_path: Path) -> None:
    model = teacher(tmp_path).requires_grad_(False)
    assert all(weight.requires_grad for weight in make_student(model, (0,)).parameters())


@pytest.mark.parametrize("family", ["bert", "roberta"])
def test_a_teacher_with_classes_gets_a_student_with_one_logit(tmp_path: Path, family: str) -> None:
    torch.manual_seed(0)
    student = make_student(teacher(tmp_path, family, n_labels=3), (0, 1))
    assert logits(student).shape == (1, 1)
    assert student.config.num_labels == 1
    student.save_pretrained(tmp_path / "student")
    read = AutoModelForSequenceClassification.from_pretrained(tmp_path / "student")
    assert torch.equal(logits(read), logits(student))


@pytest.mark.parametrize("family", ["albert", "modernbert"])
def test_layers_that_are_shared_or_know_their_place_are_not_taken_out(
    tmp_path: Path, family: str
) -> None:
    with pytest.raises(UnsupportedCheckpoint, match=f"a {family} teacher cannot lend its layers"):
        make_student(teacher(tmp_path, family), (0,))


def test_a_pooled_head_reads_layers_that_a_student_would_not_have(tmp_path: Path) -> None:
    model = teacher(tmp_path)
    with pytest.raises(UnsupportedCheckpoint, match="with a pooled head"):
        make_student(PooledClassifier(model.bert, "cat4"), (0,))
