from __future__ import annotations

import contextlib
import json
import math
import random
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export.errors import BadPairsFile
from model_export.evaluate import judge
from model_export.judgements import Grade
from model_export.pairs import LabelledPair, read_pairs
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


labels = st.one_of(st.none(), st.sampled_from([0, 1]), st.floats(-0.2, 1.2))
grades = st.one_of(st.none(), st.integers(-1, 5), st.floats(-1, 22))
max_grades = st.one_of(st.none(), st.integers(0, 22), st.floats(0, 22))
rows_of_a_query = st.lists(st.tuples(labels, grades, max_grades), min_size=2, max_size=8)


@given(rows_of_a_query, st.randoms(use_true_random=False))
def test_ndcg_of_all_that_the_reader_accepts_is_in_0_to_1(
    rows: list[tuple[float | None, float | None, float | None]], chance: random.Random
) -> None:
    accepted: list[LabelledPair] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "pairs.jsonl"
        for label, grade, best in rows:
            row = {"query": "q", "text": "t", "label": label, "grade": grade, "max_grade": best}
            file.write_text(json.dumps(row), encoding="utf-8")
            with contextlib.suppress(BadPairsFile):
                accepted += read_pairs(file)
    scores = [round(chance.choice([pair.gain, chance.random()]), 1) for pair in accepted]
    assert all(0 <= pair.gain <= 1 for pair in accepted)
    if accepted:
        value = judge(accepted, np.array(scores)).ndcg_at_10
        assert value is None or 0 <= value <= 1


def test_ndcg_of_ties_is_not_above_1_by_rounding() -> None:
    pairs = [pair("a", 0, Grade(value, 3)) for value in (0, 0.7, 0.7, 0.7)]
    assert judge(pairs, np.array([p.gain for p in pairs])).ndcg_at_10 == 1


def test_what_the_labels_cannot_tell_is_none_and_stays_valid_json() -> None:
    quality = judge([pair("a", 1), pair("b", 1)], np.array([0.5, 0.6]))
    assert quality.auc is None
    assert quality.ndcg_at_10 is None
    json.dumps(asdict(quality), allow_nan=False)
