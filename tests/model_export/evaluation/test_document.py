from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from model_export.errors import BadPairsFile
from model_export.evaluate import judge
from model_export.evaluation.document import (
    EvaluationOptions,
    evaluation,
    refuse_one_class,
)
from model_export.evaluation.models import Scored, ScoredKind
from model_export.evaluation.slices import PairLengths
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from service.domain import Ad

N_QUERIES, N_ADS = 30, 5


def make_pairs() -> list[LabelledPair]:
    rng = np.random.default_rng(0)
    return [
        LabelledPair(f"query {query}", Ad("1", text="ad"), float(grade >= 2), Grade(grade, 3))
        for query in range(N_QUERIES)
        for grade in rng.integers(0, 4, N_ADS)
    ]


PAIRS = make_pairs()
SOURCES = ["many" if int(pair.query.split()[1]) < 28 else "few" for pair in PAIRS]


def scored(noise: float, seed: int, kind: ScoredKind = "bundle") -> Scored:
    rng = np.random.default_rng(seed)
    labels = np.array([pair.label for pair in PAIRS])
    scores = 1 / (1 + np.exp(-(2 * labels - 1) - noise * rng.normal(size=len(PAIRS))))
    lengths = PairLengths(np.full(len(PAIRS), 2), rng.integers(1, 50, len(PAIRS)), labels > 2)
    return Scored(f"noise {noise}", kind, scores, kind != "baseline", {"version": "v"}, lengths)


def made(**options: int) -> dict[str, Any]:
    models = [scored(1, 0), scored(4, 1), scored(2, 2, "baseline")]
    return evaluation(PAIRS, SOURCES, models, EvaluationOptions(**{"n_resamples": 200, **options}))


def test_the_figures_are_those_of_the_export() -> None:
    document = made()
    quality = judge(PAIRS, scored(1, 0).scores)
    figures = document["models"][0]["figures"]
    assert figures["auc"]["value"] == pytest.approx(quality.auc)
    assert figures["ndcg"]["value"] == pytest.approx(quality.ndcg_at_10)
    assert figures["log_loss"]["value"] == pytest.approx(quality.log_loss)
    assert figures["calibration_error"]["value"] == pytest.approx(quality.calibration_error)


def test_every_model_but_the_first_has_differences_and_a_worse_one_is_found_out() -> None:
    first, worse, baseline = made()["models"]
    assert first["difference_from_first"] == {}
    difference = worse["difference_from_first"]["auc"]
    assert difference["value"] == pytest.approx(
        worse["figures"]["auc"]["value"] - first["figures"]["auc"]["value"]
    )
    assert difference["low"] < difference["value"] < difference["high"] < 0
    assert "brier" not in baseline["difference_from_first"]


def test_slices_hold_every_model_and_small_ones_are_marked() -> None:
    document = made()
    parts = {(part["group"], part["name"]): part for part in document["slices"]}
    assert parts["source", "few"]["is_small"]
    assert parts["source", "few"]["n_pairs"] == 2 * N_ADS
    assert not parts["source", "many"]["is_small"]
    assert parts["truncation", "whole"]["n_queries"] == N_QUERIES
    inside = [index for index, source in enumerate(SOURCES) if source == "many"]
    own = judge([PAIRS[index] for index in inside], scored(4, 1).scores[inside])
    figures = parts["source", "many"]["figures"]
    assert figures[1]["auc"]["value"] == pytest.approx(own.auc)
    assert figures[1]["calibration_error"]["value"] == pytest.approx(own.calibration_error)
    assert [set(of_model) for of_model in figures] == [{"auc", "calibration_error"}] * 2 + [{"auc"}]


def test_the_document_is_json_and_the_same_twice_but_not_with_another_seed() -> None:
    assert json.dumps(made(), allow_nan=False) == json.dumps(made(), allow_nan=False)
    assert made(seed=1)["models"][0]["figures"] != made()["models"][0]["figures"]


def test_what_the_pairs_do_not_allow_is_null() -> None:
    pairs = [LabelledPair("a", Ad("1", text="x"), 1), LabelledPair("b", Ad("1", text="x"), 0)]
    model = Scored("m", "bundle", np.array([0.9, 0.1]), True)
    document = evaluation(pairs, ["s", "s"], [model], EvaluationOptions(n_resamples=10))
    figures = document["models"][0]["figures"]
    assert figures["auc"]["value"] == 1.0
    assert figures["ndcg"] == {"value": None, "low": None, "high": None}
    assert document["pairs"]["n_queries_with_both_classes"] == 0


@pytest.mark.parametrize(("label", "which"), [(1.0, "relevant"), (0.5, "irrelevant")])
def test_pairs_of_one_class_are_refused(label: float, which: str) -> None:
    pairs = [LabelledPair("q", Ad("1", text="ad"), label)] * 3
    with pytest.raises(BadPairsFile, match=rf"^a\.csv, b\.jsonl: all 3 pairs are {which}"):
        refuse_one_class(pairs, ["a.csv", "b.jsonl"])
    other = LabelledPair("q", Ad("1", text="ad"), 0.0 if label == 1 else 0.6)
    refuse_one_class([*pairs, other], ["a.csv"])
