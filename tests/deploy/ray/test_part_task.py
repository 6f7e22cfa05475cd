from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from deploy.ray.part_task import TaskOptions, score_part
from service.bulk.part_run import RunPlan, open_table
from service.bulk.table import PartSize
from service.startup_errors import BundleIncompatible


def test_a_node_with_another_model_under_the_same_path_scores_nothing(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"query": "red", "text": "shoe"}\n', encoding="utf-8")
    survey = open_table(path, 1000).survey(PartSize(), with_columns=False)
    plan = RunPlan(path, "jsonl", dataclasses.replace(survey, parts=()), 1000)
    options = TaskOptions(plan, tmp_path, tiny_bundle_int8, "another", 1)
    with pytest.raises(BundleIncompatible, match="here, the run's is another"):
        score_part(options, survey.parts[0])
    assert list(tmp_path.iterdir()) == [path]
