from __future__ import annotations

from typing import Any

import pytest

from model_export.errors import ExportError
from model_export.pairs import LabelledPair
from model_export.recipe import FinetuneRecipe, human_target, recipe_for
from service.domain import Ad
from service.scoring.ad_template import AdTemplate

AD = Ad(id="A", title="Red shoes")


def test_without_raters_the_label_is_the_target() -> None:
    assert human_target(LabelledPair("shoes", AD, label=0.3), rater_share=0.5) == 0.3


def test_disagreement_among_raters_moves_the_target_towards_their_share() -> None:
    pair = LabelledPair("shoes", AD, label=1.0, rater_votes=(1.0, 2 / 3, 0.0))
    assert human_target(pair, rater_share=0.0) == 1.0
    assert human_target(pair, rater_share=0.5) == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert human_target(pair, rater_share=1.0) == pytest.approx(2 / 3)


def test_the_usual_recipe_is_that_of_the_default_model() -> None:
    assert recipe_for() == FinetuneRecipe()


def test_an_approach_has_its_own_usual_numbers_and_the_users_win() -> None:
    full = recipe_for("full", weight_decay=0.1)
    assert (full.loss, full.learning_rate, full.epochs, full.weight_decay) == ("bce", 3e-5, 3, 0.1)
    assert (full.imitation_pairs, full.teacher_share) == (0, 0)
    assert recipe_for("features").pooling == "mean"
    assert recipe_for("full", "grades").loss == "cross-entropy"
    assert recipe_for("lora", loss="mse").imitation_pairs == FinetuneRecipe().imitation_pairs
    assert recipe_for("lora", loss="ranknet").imitation_pairs == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epochs": 0}, "epochs must be at least 1, got 0"),
        ({"list_pairs": 1}, "list_pairs must be at least 2, got 1"),
        ({"max_pair_tokens": 7}, "max_pair_tokens must be at least 8, got 7"),
        ({"rater_share": 1.5}, "rater_share must be in 0-1, got 1.5"),
        ({"teacher_share": 30.0}, "teacher_share must be in 0-1, got 30.0"),
        ({"warmup_share": 2.0}, "warmup_share must be in 0-1, got 2.0"),
        ({"weight_decay": float("nan")}, "weight_decay must be at least 0, got nan"),
        ({"learning_rate": 1.0}, "learning_rate must be between 0 and 1"),
        ({"head": "classes", "loss": "bce"}, "head classes, which takes cross-entropy"),
        ({"head": "grades", "loss": "lambda"}, "loss lambda does not fit head grades"),
        ({"pooling": "cat4"}, "approach lora trains BERT's own head"),
        ({"approach": "features"}, "needs a pooling: cls, mean or cat4"),
        ({"approach": "full", "imitation_pairs": 9}, "are for approach lora"),
        ({"loss": "listnet", "imitation_pairs": 9}, "with the loss bce or mse"),
        ({"keep": "last", "patience": 2}, "needs keep best"),
        ({"approach": "full", "ad_template": AdTemplate(("title",))}, "only an adapter can say"),
    ],
)
def test_what_no_training_can_use_is_refused(given: dict[str, Any], message: str) -> None:
    usual = {"pooling": None, "imitation_pairs": 0, "teacher_share": 0.0}
    with pytest.raises(ExportError, match=message):
        FinetuneRecipe(**{**usual, **given})
