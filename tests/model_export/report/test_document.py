from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from model_export.metrics import log_loss
from model_export.report.document import plain, report_json
from model_export.report.evidence import ParityStage
from tests.model_export.report.made_evidence import FIGURES, LATENCY, TOLERANCES, made_evidence


def stage_with(figure: str, value: float) -> list[ParityStage]:
    return [ParityStage("torch against int8", FIGURES | {figure: value}, TOLERANCES)]


def passed(document: dict[str, Any]) -> dict[str, bool]:
    return {row["figure"]: row["passed"] for row in document["parity"]}


def test_values_become_plain_json() -> None:
    value = {"b": np.float64(1.23456789), "a": [np.int64(3), (float("inf"), np.array([np.nan]))]}
    assert plain(value, 5) == {"b": 1.2346, "a": [3, [None, [None]]]}
    assert plain(0.1234567) == 0.1234567
    assert plain(True, 5) is True


@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("worst_logit", 1.01),
        ("mean_score", 0.017),
        ("worst_score", 0.16),
        ("rank_agreement", 0.98),
        ("batch_spread", 1e-9),
        ("batch_spread", float("nan")),
        ("rank_agreement", float("nan")),
    ],
)
def test_each_tolerance_is_judged_on_its_own(figure: str, value: float) -> None:
    assert all(passed(report_json(made_evidence())).values())
    missed = passed(report_json(made_evidence(stages=stage_with(figure, value))))
    assert [name for name, ok in missed.items() if not ok] == [figure]


def test_what_is_not_a_number_is_null_in_strict_json() -> None:
    document = report_json(made_evidence(stages=stage_with("rank_agreement", float("nan"))))
    text = json.dumps(document, allow_nan=False)
    assert "NaN" not in text
    (row,) = [row for row in document["parity"] if row["figure"] == "rank_agreement"]
    assert row["value"] is None


def test_the_score_change_is_given_for_made_and_for_labelled_pairs() -> None:
    evidence = made_evidence(20, 40)
    everything, made, labelled = report_json(evidence)["score_change"]
    change = np.abs(evidence.served_scores - evidence.reference_scores)
    assert everything["mean"] == pytest.approx(change.mean(), rel=1e-4)
    assert made["worst"] == pytest.approx(change[:20].max(), rel=1e-4)
    assert labelled["n_pairs"] == 40
    signed = evidence.served_scores - evidence.reference_scores
    assert labelled["mean_signed"] == pytest.approx(signed[20:].mean(), rel=1e-4)
    assert [row["pairs"] for row in report_json(made_evidence(20, 0))["score_change"]] == ["all"]


def test_the_worst_pairs_come_first_with_their_scores_and_labels() -> None:
    evidence = made_evidence(20, 40)
    change = evidence.served_scores - evidence.reference_scores
    rows = report_json(evidence)["worst_pairs"]
    worst = int(np.abs(change).argmax())
    assert len(rows) == 10
    assert rows[0]["query"] == f"query {worst}"
    assert rows[0]["change"] == pytest.approx(change[worst], rel=1e-4)
    assert all(("label" in row) == (int(row["query"].split()[1]) >= 20) for row in rows)


def test_before_calibration_is_the_served_graph_and_after_is_what_was_not_fitted_on() -> None:
    evidence = made_evidence()
    assert evidence.labels is not None
    part = report_json(evidence)["reliability"]
    assert not part["after_is_held_out"]
    loss_before = log_loss(evidence.labels, evidence.served_scores[20:])
    assert part["before"]["log_loss"] == pytest.approx(loss_before, rel=1e-4)
    loss_after = log_loss(evidence.labels, evidence.calibrated_scores[20:])
    assert part["after"]["log_loss"] == pytest.approx(loss_after, rel=1e-4)
    held_out = np.full(40, 0.5)
    part = report_json(made_evidence(held_out_scores=held_out))["reliability"]
    assert part["after_is_held_out"]
    assert part["after"]["log_loss"] == pytest.approx(np.log(2), rel=1e-4)


def test_the_histograms_show_the_users_pairs_and_every_one_of_them() -> None:
    evidence = made_evidence(20, 40)
    assert evidence.labels is not None
    document = report_json(evidence)
    relevant, other = document["score_histogram"]["series"]
    assert relevant["n_pairs"] == sum(relevant["counts"]) == int(evidence.labels.sum())
    assert other["n_pairs"] + relevant["n_pairs"] == 40
    lengths = document["lengths"]
    assert sum(lengths["whole"]) + sum(lengths["truncated"]) == lengths["n_pairs"] == 40
    assert sum(lengths["truncated"]) == lengths["n_truncated"] == evidence.truncated[20:].sum()


def test_without_labels_the_made_pairs_are_shown() -> None:
    document = report_json(made_evidence(20, 0))
    assert document["reliability"] is None
    assert [one["name"] for one in document["score_histogram"]["series"]] == ["made pairs"]
    assert document["lengths"]["n_pairs"] == 20


def test_many_points_are_thinned_out_and_the_worst_stays() -> None:
    evidence = made_evidence(20, 4_000)
    scatter = report_json(evidence)["scatter"]
    assert scatter["n_pairs"] == 4_020
    assert len(scatter["change"]) == len(scatter["reference"]) == len(scatter["served"]) == 2_000
    worst = np.abs(evidence.served_scores - evidence.reference_scores).max()
    assert abs(scatter["change"][0]) == pytest.approx(worst, rel=1e-4)


def test_latency_is_there_only_if_it_was_measured() -> None:
    assert report_json(made_evidence())["latency"] is None
    part = report_json(made_evidence(latency=LATENCY))["latency"]
    assert part["rows"][0]["median_ms"] == 20.0
    assert part["machine"]["cpu"] == "a processor"


def test_the_facts_keep_all_their_digits() -> None:
    facts = dict(made_evidence().facts) | {"score_calibration": {"slope": 0.9975347287085844}}
    document = report_json(made_evidence(facts=facts))
    assert document["facts"]["score_calibration"]["slope"] == 0.9975347287085844
