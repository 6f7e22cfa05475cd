from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from model_export.evaluate import judge
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from service.domain import Ad


def pair(query: str, label: float, grade: Grade | None = None) -> LabelledPair:
    return LabelledPair(query, Ad("1", text="ad"), label, grade)


def test_the_figures_are_those_of_the_labels_and_the_scores() -> None:
    pairs = [pair("a", 1), pair("a", 0), pair("b", 0), pair("b", 1)]
    quality = judge(pairs, np.array([0.9, 0.2, 0.6, 0.3]))
    assert quality.pairs == 4
    assert quality.auc == pytest.approx(3 / 4)
    assert quality.ndcg_at_10 == pytest.approx((1 + 1 / math.log2(3)) / 2)
    likelihood = math.log(0.9) + math.log(0.8) + math.log(0.4) + math.log(0.3)
    assert quality.log_loss == pytest.approx(-likelihood / 4)
    assert quality.calibration_error == pytest.approx((0.1 + 0.2 + 0.6 + 0.7) / 4)


def test_grades_order_a_ranking_that_labels_cannot() -> None:
    best_last = [pair("a", 1, Grade(2, 3)), pair("a", 1, Grade(3, 3))]
    assert judge(best_last, np.array([0.1, 0.9])).ndcg_at_10 == 1
    assert judge(best_last, np.array([0.9, 0.1])).ndcg_at_10 == pytest.approx(
        (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))
    )


def test_grades_of_two_scales_are_compared_by_their_part_of_the_best_gain() -> None:
    pairs = [pair("a", 1, Grade(2, 2)), pair("a", 0, Grade(2, 4))]  # gains 3/3 and 3/15
    assert judge(pairs, np.array([0.9, 0.1])).ndcg_at_10 == 1
    assert judge(pairs, np.array([0.1, 0.9])).ndcg_at_10 == pytest.approx(
        (1 / 5 + 1 / math.log2(3)) / (1 + 1 / 5 / math.log2(3))
    )


def test_what_the_labels_cannot_tell_is_none_and_stays_valid_json() -> None:
    quality = judge([pair("a", 1), pair("b", 1)], np.array([0.5, 0.6]))
    assert quality.auc is None
    assert quality.ndcg_at_10 is None
    json.dumps(asdict(quality), allow_nan=False)
