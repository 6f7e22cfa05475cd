from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from model_export.report.document import report_json
from model_export.report.evidence import ParityStage
from model_export.report.verdict import verdict
from tests.model_export.report.made_evidence import FIGURES, QUALITY, TOLERANCES, made_evidence


def grounds(**changes: Any) -> str:  # noqa: ANN401  # any field of the evidence
    return verdict(report_json(made_evidence(**changes)))[2]


def test_within_every_tolerance_the_answer_is_yes() -> None:
    passed, answer, reasons = verdict(report_json(made_evidence()))
    assert passed
    assert answer.startswith("Yes: served in int8")
    assert "AUC is 0.9000 with torch and 0.8900 as served (−0.0100)" in reasons  # noqa: RUF001  # minus
    assert "NDCG@10 is 0.8000 with torch and 0.8000 as served (no change)" in reasons


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.2, "worst score is 0.200, tolerated is at most 0.15"), (np.nan, "is not a number")],
)
def test_past_a_tolerance_the_answer_is_no_and_names_it(value: float, said: str) -> None:
    stage = ParityStage("torch against int8", FIGURES | {"worst_score": value}, TOLERANCES)
    passed, answer, reasons = verdict(report_json(made_evidence(stages=[stage])))
    assert not passed
    assert answer.startswith("No:")
    assert said in reasons


def test_a_spread_of_zero_and_another_read_differently() -> None:
    assert "spread exactly 0" in grounds()
    spread = np.zeros(60)
    spread[7] = 0.25
    assert "changes by up to 0.250 with its batch mates" in grounds(spread=spread)


def test_without_labels_nothing_is_said_about_quality() -> None:
    assert "cannot say how good" in grounds(n_labelled=0)
    no_auc = {side: figures | {"auc": None} for side, figures in QUALITY.items()}
    assert "there is no AUC" in grounds(quality=no_auc)


def test_equal_scores_have_no_rank_agreement() -> None:
    assert "is not defined" in grounds(served_scores=np.full(60, 0.5))
