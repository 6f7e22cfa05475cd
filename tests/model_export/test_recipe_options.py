from __future__ import annotations

from pathlib import Path

import pytest

from model_export.__main__ import main
from model_export.distillation import recipe as distil_recipe
from model_export.errors import ExportError
from model_export.pretraining import recipe as pretrain_recipe
from model_export.recipe_options import require_usable

REPORT = "report.json"


def test_a_place_that_is_free_or_empty_is_usable(tmp_path: Path) -> None:
    for out in (tmp_path / "absent", tmp_path):
        require_usable(out, REPORT, overwrite=False)


def test_an_older_model_is_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / REPORT).write_text("{}", encoding="utf-8")
    with pytest.raises(ExportError, match=r"already holds a model .* --overwrite"):
        require_usable(tmp_path, REPORT, overwrite=False)
    require_usable(tmp_path, REPORT, overwrite=True)


def test_anything_else_is_never_replaced(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("mine", encoding="utf-8")
    for out in (tmp_path, file):
        with pytest.raises(ExportError, match="is nothing that this command wrote"):
            require_usable(out, REPORT, overwrite=True)


@pytest.mark.parametrize(
    ("command", "report_file"),
    [
        (["finetune", "--train", "absent.csv", "--dev", "absent.csv"], "training_report.json"),
        (["pretrain", "--texts", "absent.csv"], pretrain_recipe.REPORT_FILE),
        (["distil", "--dev", "absent.csv"], distil_recipe.REPORT_FILE),
        (["pack", "--student", "absent", "--dev", "absent.csv"], "pack_report.json"),
    ],
)
def test_the_commands_that_train_ask_before_they_read_anything(
    tmp_path: Path, command: list[str], report_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / report_file).write_text("{}", encoding="utf-8")
    command = [*command, "--out", str(tmp_path)]
    assert main(command) == 1
    assert "already holds a model of this command" in capsys.readouterr().err
    assert main([*command, "--overwrite"]) == 1
    assert "absent.csv" in capsys.readouterr().err
