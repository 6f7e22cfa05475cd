from __future__ import annotations

import pytest

from model_export.distillation.recipe import DistilRecipe, chosen_layers
from model_export.errors import ExportError


@pytest.mark.parametrize(
    ("rule", "n_layers", "chosen"),
    [
        ("spread", 1, (5,)),
        ("spread", 2, (0, 5)),
        ("spread", 3, (0, 2, 5)),
        ("spread", 6, (0, 1, 2, 3, 4, 5)),
        ("first", 2, (0, 1)),
        ("last", 2, (4, 5)),
        ("1,4", 2, (1, 4)),
    ],
)
def test_layers_are_chosen_by_rule_or_by_number(
    rule: str, n_layers: int, chosen: tuple[int, ...]
) -> None:
    assert chosen_layers(DistilRecipe(n_layers=n_layers, layers=rule), 6) == chosen


@pytest.mark.parametrize(
    ("rule", "n_layers", "reason"),
    [
        ("spread", 7, "n_layers is 7, and the teacher has 6 layers"),
        ("middle", 2, "must be one of spread, first, last or numbers"),
        ("1,", 2, "must be one of"),
        ("4,1", 2, "must be rising numbers in 0-5"),
        ("1,1", 2, "must be rising"),
        ("-1,2", 2, "must be rising"),
        ("1,6", 2, "must be rising"),
        ("1,2,3", 2, "lists 3, and n_layers is 2"),
    ],
)
def test_layers_that_the_teacher_does_not_have_are_refused(
    rule: str, n_layers: int, reason: str
) -> None:
    with pytest.raises(ExportError, match=reason):
        chosen_layers(DistilRecipe(n_layers=n_layers, layers=rule), 6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_layers", 0),
        ("epochs", 0),
        ("pairs_per_query", 4),
        ("label_weight", -0.1),
        ("label_weight", float("nan")),
        ("learning_rate", 0.0),
        ("pseudo_query_share", 1.5),
        ("reworded_share", -0.5),
        ("cut_share", 1.1),
        ("hidden_weight", -1.0),
        ("seed", -1),
    ],
)
def test_numbers_that_no_training_can_use_are_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(ExportError, match=f"{name} must be .* got {value}"):
        DistilRecipe(**{name: value})  # type: ignore[arg-type]  # each field has its own type


def test_updates_of_low_rank_leave_the_word_vectors_alone() -> None:
    with pytest.raises(ExportError, match="lora_rank trains updates of low rank"):
        DistilRecipe(lora_rank=4, train_embeddings=True)
