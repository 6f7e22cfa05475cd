from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

from model_export.out_folder import MODEL_FILES, move_into, partial_folder, write_report
from tests.tiny_models import FAMILIES, write_model


@dataclass(frozen=True)
class Report:
    figure: float


def written(out: Path) -> Path:
    partial = partial_folder(out)
    write_report(partial, "report.json", Report(0.5))
    return partial


def test_what_was_written_is_in_its_place_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "new" / "model"
    move_into(written(out), out)
    assert json.loads((out / "report.json").read_text(encoding="utf-8")) == {"figure": 0.5}
    assert list(out.parent.iterdir()) == [out]


def test_what_a_stopped_run_left_is_not_mixed_with_the_next_ones(tmp_path: Path) -> None:
    left = written(tmp_path / "model")
    (left / "half a file").touch()
    partial = written(tmp_path / "model")
    assert partial == left
    assert [file.name for file in partial.iterdir()] == ["report.json"]


def test_files_of_an_older_model_go_and_all_others_stay(tmp_path: Path) -> None:
    out = tmp_path / "model"
    out.mkdir()
    older = ("weight_delta.safetensors", "adrel.json", "score_calibration.json", "pack_report.json")
    for name in (*older, "model-2.safetensors", "notes.txt", "report.json"):
        (out / name).write_text("old", encoding="utf-8")
    move_into(written(out), out)
    assert sorted(file.name for file in out.iterdir()) == ["notes.txt", "report.json"]
    assert (out / "report.json").read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_file_of_a_saved_model_is_known_as_one(family: str, tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", family)
    for file in folder.iterdir():
        assert any(fnmatch(file.name, pattern) for pattern in MODEL_FILES), file.name


def test_a_figure_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        write_report(tmp_path, "report.json", Report(float("nan")))
    assert list(tmp_path.iterdir()) == []
