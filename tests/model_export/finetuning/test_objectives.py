from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from transformers import BertConfig

from model_export.errors import BadPairsFile
from model_export.finetuning.objectives import label_names, loss_of, raters_note, targets
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from model_export.read_head import read_head
from model_export.recipe import recipe_for
from service.domain import Ad
from service.scoring.calibration import sigmoid as sigmoid_of
from service.scoring.head import margin


def pair(label: float, grade: Grade | None = None) -> LabelledPair:
    return LabelledPair("red", Ad("1", text="shoe"), label, grade)


def graded(best: float, *values: float) -> list[LabelledPair]:
    return [pair(value / best, Grade(value, best)) for value in values]


GRADED = [pair(1.0, Grade(3, 3)), pair(0.0, Grade(0, 3)), pair(0.3, Grade(1, 3))]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def value(head: str, loss: str, logits: list[list[float]], wanted: list[float]) -> float:
    recipe = recipe_for("full", head, loss=loss)  # type: ignore[arg-type]  # a test's str
    labels = torch.tensor([[target, 0.0] for target in wanted])
    return float(loss_of(recipe)({"logits": torch.tensor(logits)}, labels))


def test_grades_are_numbered_from_worst_to_best_of_the_scale_also_where_some_do_not_occur() -> None:
    recipe = recipe_for("full", "grades")
    for pairs in (GRADED, graded(3, 0, 1, 2), graded(3, 1, 2)):
        names = label_names(recipe, pairs)
        assert names == ("grade_0", "grade_1", "grade_2", "grade_3")
        wanted = [f"grade_{pair.grade.value:g}" for pair in pairs if pair.grade is not None]
        assert [names[int(place)] for place in targets(recipe, pairs)] == wanted


def test_the_best_grade_of_the_scale_alone_is_served_as_1() -> None:
    config = BertConfig(id2label=dict(enumerate(label_names(recipe_for("full", "grades"), GRADED))))
    head = read_head(config, None)
    certain = np.where(np.eye(4) > 0, 100, 0).astype(np.float32)
    scores = sigmoid_of(margin(certain, head))
    assert scores == pytest.approx([0, 1 / 3, 2 / 3, 1], abs=1e-6)


def test_between_the_ends_of_a_scale_with_halves_are_the_grades_that_occur() -> None:
    recipe = recipe_for("full", "grades")
    assert label_names(recipe, graded(2, 1.5, 0.5)) == (
        "grade_0", "grade_0.5", "grade_1.5", "grade_2"
    )  # fmt: skip
    assert targets(recipe, graded(1, 0, 0.5, 1)) == [0.0, 1.0, 2.0]


def test_rankings_learn_gains_and_all_else_labels() -> None:
    assert targets(recipe_for("full", loss="lambda"), GRADED) == [3.0, 0.0, 1.0]
    assert targets(recipe_for("full"), GRADED) == [1.0, 0.0, 0.3]
    assert targets(recipe_for("full", "classes"), GRADED) == [1.0, 0.0, 0.3]


def test_a_ranking_learns_the_widest_scale_with_gains_kept() -> None:
    recipe = recipe_for("full", loss="lambda")
    pairs = [*graded(4, 4, 2), *graded(2, 2, 1), pair(1.0), pair(0.0)]
    wanted = targets(recipe, pairs)
    assert wanted[:2] == [4.0, 2.0]
    assert [wanted[2], *wanted[4:]] == [4.0, 4.0, 0.0], "the best and the worst are the same"
    gains = [(2**grade - 1) / (2**4 - 1) for grade in wanted]
    assert gains == pytest.approx([pair.gain for pair in pairs])


def test_raters_in_the_targets_are_told_and_can_be_left_out() -> None:
    pairs = [pair(1.0), LabelledPair("red", Ad("1", text="shoe"), 1.0, rater_votes=(1.0, 0.0))]
    assert targets(recipe_for("full"), pairs) == [1.0, 0.75]
    note = raters_note(recipe_for("full"), pairs)
    assert note is not None
    assert note.startswith("raters' votes are 50% of the target of 1 of the 2 training pairs")
    without = recipe_for("full", rater_share=0.0)
    assert targets(without, pairs) == [1.0, 1.0]
    assert raters_note(without, pairs) is None
    assert raters_note(recipe_for("full"), pairs[:1]) is None
    assert raters_note(recipe_for("full", loss="lambda"), pairs) is None, "it ranks by gains"


def test_pairs_without_grades_or_with_too_few_or_many_are_refused() -> None:
    recipe = recipe_for("full", "grades")
    with pytest.raises(BadPairsFile, match="1 of 4 training pairs have no 'grade'"):
        label_names(recipe, [*GRADED, pair(0.0)])
    with pytest.raises(BadPairsFile, match="scale of 0-1 has 2 grades, and head grades takes 3 to"):
        label_names(recipe, graded(1, 0, 1))
    with pytest.raises(BadPairsFile, match="scale of 0-20 has 21 grades"):
        label_names(recipe, graded(20, 3, 4))


def test_losses_are_those_of_the_textbook() -> None:
    soft = -(0.7 * math.log(sigmoid(1.5)) + 0.3 * math.log(1 - sigmoid(1.5)))
    assert value("logit", "bce", [[1.5]], [0.7]) == pytest.approx(soft, rel=1e-5)
    assert value("classes", "cross-entropy", [[0.5, 2.0]], [0.7]) == pytest.approx(soft, rel=1e-5)
    squared = (sigmoid(1.5) - 0.7) ** 2
    assert value("logit", "mse", [[1.5]], [0.7]) == pytest.approx(squared, rel=1e-5)
    total = sum(math.exp(logit) for logit in (0.1, 0.2, 0.9))
    expected = -math.log(math.exp(0.9) / total)
    assert value("grades", "cross-entropy", [[0.1, 0.2, 0.9]], [2.0]) == pytest.approx(
        expected, rel=1e-5
    )
