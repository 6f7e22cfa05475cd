from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from model_export.distillation.recipe import REPORT_FILE as DISTIL_REPORT_FILE
from model_export.recipe import REPORT_FILE
from model_export.shipped_models import SHIPPED_MODELS
from model_export.training_reports import doubt_of

NOTHING = "the model has learnt nothing: dev AUC 0.49, where chance is 0.5"


@pytest.mark.parametrize(
    ("name", "report"),
    [
        (REPORT_FILE, {"learnt_nothing": NOTHING}),
        (DISTIL_REPORT_FILE, {"best": {"mean_auc": 0.49}}),
    ],
)
def test_a_model_that_has_learnt_nothing_is_told_by_its_own_report(
    name: str, report: dict[str, Any], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(json.dumps(report), encoding="utf-8")
    said = doubt_of(tmp_path)
    assert said is not None
    assert said.startswith(NOTHING)
    assert f"({name})" in said


@pytest.mark.parametrize(
    "report",
    [
        {"learnt_nothing": None},
        {"learnt_nothing": 7},
        {"quality": 1},
        ["of another tool"],
    ],
)
def test_nothing_is_said_of_a_good_model_or_by_another_report(
    report: object, tmp_path: Path
) -> None:
    (tmp_path / REPORT_FILE).write_text(json.dumps(report), encoding="utf-8")
    assert doubt_of(tmp_path) is None


def test_nothing_is_said_without_a_report(tmp_path: Path) -> None:
    assert doubt_of(tmp_path) is None
    assert doubt_of(tmp_path / "nowhere") is None


def test_the_models_that_come_with_adrel_have_learnt_something() -> None:
    assert [doubt_of(model.folder) for model in SHIPPED_MODELS.values()] == [None] * 3
