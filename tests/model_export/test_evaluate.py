from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from model_export.evaluate import judge, score_pairs
from model_export.pairs import LabelledPair
from service.domain import Ad
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.calibration import Platt


def pair(query: str, label: float, grade: float | None = None, text: str = "ad") -> LabelledPair:
    return LabelledPair(query, Ad("1", text=text), label, grade)


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
    best_last = [pair("a", 1, grade=2), pair("a", 1, grade=3)]
    assert judge(best_last, np.array([0.1, 0.9])).ndcg_at_10 == 1
    assert judge(best_last, np.array([0.9, 0.1])).ndcg_at_10 == pytest.approx(
        (3 + 7 / math.log2(3)) / (7 + 3 / math.log2(3))
    )


def test_what_the_labels_cannot_tell_is_none_and_stays_valid_json() -> None:
    quality = judge([pair("a", 1), pair("b", 1)], np.array([0.5, 0.6]))
    assert quality.auc is None
    assert quality.ndcg_at_10 is None
    json.dumps(asdict(quality), allow_nan=False)


@pytest.fixture
def bundle(tiny_bundle_int8: Path) -> Bundle:
    return open_bundle(tiny_bundle_int8)


def many_pairs() -> list[LabelledPair]:
    """Longest first, so that scoring by length must put them back in order."""
    return [pair(f"red shoe {n}", n % 2, text="cheap bag " * (21 - n)) for n in range(21)]


def test_scores_keep_the_order_of_the_pairs(bundle: Bundle) -> None:
    pairs = many_pairs()
    one_by_one = [
        bundle.to_scores(bundle.model.logits(bundle.encode(p.query, [p.ad])))[0] for p in pairs
    ]
    assert len(set(one_by_one)) > 10
    assert score_pairs(bundle, pairs).tolist() == one_by_one


def test_progress_is_told_until_every_pair_is_done(bundle: Bundle) -> None:
    steps: list[int] = []
    score_pairs(bundle, many_pairs(), steps.append)
    assert len(steps) > 1
    assert sum(steps) == 21


def test_scores_are_calibrated_as_the_service_would(bundle: Bundle) -> None:
    calibration = Platt(slope=0.5, intercept=-1.0, fitted_on="dev")
    calibrated = replace(
        bundle, manifest=bundle.manifest.model_copy(update={"score_calibration": calibration})
    )
    plain, moved = score_pairs(bundle, many_pairs()), score_pairs(calibrated, many_pairs())
    log_odds = np.log(plain / (1 - plain))
    np.testing.assert_allclose(moved, 1 / (1 + np.exp(-(0.5 * log_odds - 1.0))), rtol=1e-9)
