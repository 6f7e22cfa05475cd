from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_export.__main__ import EXIT_BROKEN_PIPE, main
from tests.tiny_models import WORDS, write_bert


@pytest.fixture
def pairs_file(tmp_path: Path) -> Path:
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"query": f"red {WORDS[i % 3]}", "title": f"{word} {WORDS[i % 5]}", "label": i % 2}
        for i, word in enumerate(WORDS * 3)
    ]
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return file


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


def test_figures_of_the_export_and_of_a_later_evaluation_are_the_same(
    tiny_checkpoint: Path, tmp_path: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bundle"
    # Labels that say nothing may get a slope of either sign, so here they follow the model.
    rows = [json.loads(line) for line in pairs_file.read_text(encoding="utf-8").splitlines()]
    labelled = relabelled_by_the_model(tiny_checkpoint, rows)
    pairs_file.write_text("\n".join(json.dumps(row) for row in labelled), encoding="utf-8")
    code = main(["export", "--checkpoint", str(tiny_checkpoint), "--out", str(out),
                 "--name", "shoes", "--no-latency", "--calibrate", str(pairs_file)])  # fmt: skip
    assert code == 0
    assert "bundle shoes " in capsys.readouterr().out
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["model"]["name"] == "shoes"
    command = ["evaluate", "--bundle", str(out), "--pairs", str(pairs_file), "--json", "-"]
    assert main([*command, "--resamples", "0"]) == 0
    figures = json.loads(capsys.readouterr().out)["models"][0]["figures"]
    served = manifest["quality"]["served"]
    for name, key in (("auc", "auc"), ("ndcg", "ndcg_at_10"), ("log_loss", "log_loss"),
                      ("calibration_error", "calibration_error")):  # fmt: skip
        assert figures[name]["value"] == pytest.approx(served[key])


def relabelled_by_the_model(
    checkpoint: Path, rows: list[dict[str, object]]
) -> list[dict[str, object]]:
    from model_export.checkpoint import load_checkpoint
    from model_export.parity import torch_logits
    from service.scoring.encoding import PairEncoder

    loaded = load_checkpoint(str(checkpoint), None, None)
    encoder = PairEncoder(loaded.backend, loaded.max_length_tokens)
    encoded = [encoder.encode(str(row["query"]), [str(row["title"])])[0] for row in rows]
    logits = torch_logits(loaded.model, encoded, with_segments=True)[:, 0]
    middle = sorted(logits)[len(rows) // 2]
    return [{**row, "label": int(logit > middle)} for row, logit in zip(rows, logits, strict=True)]


def test_a_folder_that_cannot_be_made_is_one_sentence_too(
    tiny_checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    out = tmp_path / "file" / "bundle"
    code = main(["export", "--checkpoint", str(tiny_checkpoint), "--out", str(out),
                 "--precision", "fp32"])  # fmt: skip
    assert code == 1
    assert capsys.readouterr().err.startswith("adrel: ")


def test_a_bundle_that_is_not_there_and_a_faulty_line_are_named(
    tmp_path: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", "--bundle", str(tmp_path), "--pairs", str(pairs_file)]) == 1
    assert str(tmp_path) in capsys.readouterr().err
    with pairs_file.open("a", encoding="utf-8") as file:
        file.write('\n{"query": "red shoe", "title": "shoe", "label": 7}\n')
    assert main(["evaluate", "--bundle", str(tmp_path), "--pairs", str(pairs_file)]) == 1
    shown = capsys.readouterr().err
    assert "line 46" in shown
    assert "0-1, got 7" in shown


def test_two_classes_need_the_users_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write_bert(tmp_path / "two", n_labels=2)
    command = ["export", "--checkpoint", str(folder), "--precision", "fp32"]
    assert main([*command, "--out", str(tmp_path / "a")]) == 1
    assert "--relevant-label" in capsys.readouterr().err
    code = main([*command, "--out", str(tmp_path / "b"), "--relevant-label", "LABEL_1"])
    assert code == 0
    manifest = json.loads((tmp_path / "b" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["head"]["relevant_index"] == 1


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


@pytest.mark.parametrize(
    "arguments", [[], ["export"], ["evaluate"], ["finetune"], ["distil"], ["pretrain"]]
)
def test_asking_for_help_does_not_wait_for_torch(arguments: list[str]) -> None:
    code = (
        "import sys, contextlib, model_export.__main__ as m\n"
        "with contextlib.suppress(SystemExit): m.main([*sys.argv[1:], '--help'])\n"
        "sys.exit(not {'torch', 'transformers', 'onnxruntime'}.isdisjoint(sys.modules))"
    )
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", code, *arguments]
    result = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
    assert "usage: python -m model_export" in result.stdout


def test_finetune_never_writes_into_a_folder_that_is_something_else(
    tmp_path: Path, pairs_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine", encoding="utf-8")
    out, pairs = str(tmp_path / "mine"), str(pairs_file)
    assert main(["finetune", "--train", pairs, "--dev", pairs, "--out", out]) == 1
    assert "exists and is nothing that this command wrote" in capsys.readouterr().err
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["notes.txt"]


@pytest.mark.parametrize(
    ("missing", "arguments"),
    [("numpy", ["--help"]), ("torch", ["finetune", "--train", "a", "--dev", "b", "--out", "c"])],
)
def test_without_its_extra_it_says_in_a_line_what_to_install(
    missing: str, arguments: list[str]
) -> None:
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from model_export.__main__ import main; sys.exit(main(sys.argv[1:]))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    *_, line = result.stderr.splitlines()  # transformers says a word before, where it is there
    assert line.startswith(f"adrel: no module {missing}")
    assert "'.[export]'" in line


@pytest.mark.parametrize("n_rows", [1, 100_000], ids=["as it ends", "in the middle"])
def test_a_reader_that_has_gone_ends_it_quietly(n_rows: int) -> None:
    code = (
        "import sys, model_export.__main__ as m\n"
        f"m._report = lambda _: print('row\\n' * {n_rows})\n"
        "sys.exit(m.main(['report', '--bundle', 'x']))"
    )
    reader, writer = os.pipe()
    os.close(reader)
    try:
        result = subprocess.run(
            [sys.executable, "-c", code],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writer)
    assert (result.returncode, result.stderr) == (EXIT_BROKEN_PIPE, "")
