from __future__ import annotations

import pytest

from model_export.pairs import LabelledPair
from model_export.recipe import human_target
from service.domain import Ad

AD = Ad(id="A", title="Red shoes")


def test_without_raters_the_label_is_the_target() -> None:
    assert human_target(LabelledPair("shoes", AD, label=0.3), rater_share=0.5) == 0.3


def test_disagreement_among_raters_moves_the_target_towards_their_share() -> None:
    pair = LabelledPair("shoes", AD, label=1.0, rater_grades=(3.0, 2.0, 0.0))
    assert human_target(pair, rater_share=0.0) == 1.0
    assert human_target(pair, rater_share=0.5) == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert human_target(pair, rater_share=1.0) == pytest.approx(2 / 3)
