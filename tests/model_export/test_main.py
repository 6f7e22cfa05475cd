from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from model_export.__main__ import main
from tests.tiny_models import WORDS


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"query": f"red {WORDS[i % 3]}", "title": f"{word} {WORDS[i % 5]}", "label": i % 2}
        for i, word in enumerate(WORDS * 3)
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


def test_evaluate_prints_json_that_a_program_can_read(
    tiny_bundle_int8: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--bundle", str(tiny_bundle_int8), "--pairs", str(pairs_file)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["pairs"] == 3 * len(WORDS)
    assert 0 <= figures["auc"] <= 1
    assert 0 <= figures["ndcg_at_10"] <= 1


def test_export_says_where_the_bundle_is(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bundle"
    code = main(["export", "--checkpoint", str(tiny_checkpoint), "--out", str(out),
                 "--precision", "fp32", "--max-length", "32"])  # fmt: skip
    shown = capsys.readouterr().out
    assert code == 0
    assert "batch_spread 0" in shown
    assert str(out) in shown.splitlines()[-1]
    assert json.loads((out / "manifest.json").read_text())["inputs"]["max_length_tokens"] == 32


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["export", "--checkpoint", "nowhere/at-all", "--out", "x"], "cannot be loaded"),
        (["evaluate", "--bundle", "nowhere", "--pairs", "nofile.jsonl"], "nofile.jsonl"),
    ],
)
def test_what_cannot_work_ends_with_one_sentence_and_code_one(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 1
    shown = capsys.readouterr().err
    assert shown.startswith("adrel: ")
    assert message in shown


def test_asking_for_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys, contextlib, model_export.__main__ as m\n"
        "with contextlib.suppress(SystemExit): m.main(['--help'])\n"
        "sys.exit('torch' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    assert subprocess.run([sys.executable, "-c", code], cwd=root, check=False).returncode == 0
