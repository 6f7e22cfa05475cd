from __future__ import annotations

from pathlib import Path

import pytest

from model_export.errors import ExportError
from model_export.finetuning.run_folder import (
    FACTS_FILE,
    STATE_FILE,
    close_run,
    last_whole_checkpoint,
    open_run,
    run_folder,
)

FACTS = {"recipe": {"fields": ("a", "b")}, "data": ["x"]}


def test_a_stopped_run_is_gone_on_with_only_when_asked_for(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "out")
    open_run(folder, FACTS, resume=True)  # there is none to resume: a new one
    open_run(folder, {"recipe": {}, "data": []}, resume=False)  # nothing was learnt yet
    open_run(folder, FACTS, resume=False)
    (folder / "labels" / "checkpoint-1").mkdir(parents=True)
    with pytest.raises(ExportError, match=r"out\.training holds a training that was stopped"):
        open_run(folder, FACTS, resume=False)
    open_run(folder, FACTS, resume=True)
    close_run(folder)
    open_run(folder, FACTS, resume=False)


def test_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    open_run(tmp_path, FACTS, resume=False)
    (tmp_path / "labels" / "checkpoint-1").mkdir(parents=True)
    with pytest.raises(ExportError, match="holds a training that differs in data, recipe"):
        open_run(tmp_path, {"recipe": {}, "data": []}, resume=True)
    (tmp_path / FACTS_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(ExportError, match="cannot be read"):
        open_run(tmp_path, FACTS, resume=True)


def test_a_checkpoint_that_broke_off_is_passed_over(tmp_path: Path) -> None:
    assert last_whole_checkpoint(tmp_path / "absent") is None
    for number in (9, 10, 11, 12):
        (tmp_path / f"checkpoint-{number}").mkdir()
    for number in (9, 10):
        (tmp_path / f"checkpoint-{number}" / STATE_FILE).write_text("{}", encoding="utf-8")
    (tmp_path / "checkpoint-11" / STATE_FILE).write_text('{"epoch": ', encoding="utf-8")
    assert last_whole_checkpoint(tmp_path) == tmp_path / "checkpoint-10"
