from __future__ import annotations

import math

import pytest
import torch

from model_export.errors import BadPairsFile
from model_export.finetuning.objectives import label_names, loss_of, raters_note, targets
from model_export.pairs import LabelledPair
from model_export.recipe import recipe_for
from service.domain import Ad


def pair(label: float, grade: float | None = None) -> LabelledPair:
    return LabelledPair("red", Ad("1", text="shoe"), label, grade)


GRADED = [pair(1.0, 3.0), pair(0.0, 0.0), pair(0.3, 1.0)]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def value(head: str, loss: str, logits: list[list[float]], wanted: list[float]) -> float:
    recipe = recipe_for("full", head, loss=loss)  # type: ignore[arg-type]  # a test's str
    labels = torch.tensor([[target, 0.0] for target in wanted])
    return float(loss_of(recipe)({"logits": torch.tensor(logits)}, labels))


def test_grades_are_numbered_from_worst_to_best_of_those_that_occur() -> None:
    recipe = recipe_for("full", "grades")
    assert label_names(recipe, GRADED) == ("grade_0", "grade_1", "grade_3")
    assert targets(recipe, GRADED) == [2.0, 0.0, 1.0]


def test_rankings_learn_gains_and_all_else_labels() -> None:
    assert targets(recipe_for("full", loss="lambda"), GRADED) == [3.0, 0.0, 1.0]
    assert targets(recipe_for("full"), GRADED) == [1.0, 0.0, 0.3]
    assert targets(recipe_for("full", "classes"), GRADED) == [1.0, 0.0, 0.3]


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
    with pytest.raises(BadPairsFile, match="2 different grades"):
        label_names(recipe, GRADED[:2])
    with pytest.raises(BadPairsFile, match="21 different grades"):
        label_names(recipe, [pair(0.0, float(number)) for number in range(21)])


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
