from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tokenizers import Tokenizer

from model_export.errors import ExportError
from model_export.write_bundle import GoldenPair, check_target, write_bundle
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import read_manifest, sha256_of
from service.scoring.golden_pairs import self_test
from service.scoring.manifest import Manifest
from service.startup_errors import GoldenMismatch

HASHED_FILES = {"model.onnx", "tokenizer.json", "golden_pairs.jsonl"}
FILES = HASHED_FILES | {"manifest.json"}


@dataclass
class Parts:
    """What a bundle is written from; a test may change any of it."""

    graph: onnx.ModelProto
    tokenizer: Tokenizer
    golden: list[GoldenPair]
    facts: dict[str, Any]

    def write(self, out: Path) -> Manifest:
        with TemporaryDirectory() as folder:
            file = Path(folder) / "model.onnx"
            onnx.save(self.graph, file)
            return write_bundle(out, file, self.tokenizer, self.golden, self.facts)


@pytest.fixture
def parts(tiny_bundle_fp32: Path) -> Parts:
    facts = read_manifest(tiny_bundle_fp32).model_dump(mode="json")
    del facts["files_sha256"], facts["model"]["version"]
    rows = (tiny_bundle_fp32 / "golden_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    return Parts(
        onnx.load(tiny_bundle_fp32 / "model.onnx"),
        Tokenizer.from_file(str(tiny_bundle_fp32 / "tokenizer.json")),
        [GoldenPair(r["query"], r["ad_text"], tuple(r["logits"])) for r in map(json.loads, rows)],
        facts,
    )


def names_in(folder: Path) -> set[str]:
    return {file.name for file in folder.iterdir()}


def test_a_bundle_is_four_files_that_the_service_accepts(parts: Parts, tmp_path: Path) -> None:
    out = tmp_path / "far" / "deep" / "down"
    manifest = parts.write(out)
    assert names_in(out) == FILES
    assert read_manifest(out) == manifest
    assert manifest.files_sha256 == {name: sha256_of(out / name) for name in HASHED_FILES}
    assert self_test(open_bundle(out)) == 0
    assert names_in(out.parent) == {"down"}, "no temporary folder stays"


def another_bias(parts: Parts) -> None:
    bias = next(t for t in parts.graph.graph.initializer if t.name == "classifier.bias")
    moved = (numpy_helper.to_array(bias) + 1e-4).astype(np.float32)
    bias.CopyFrom(numpy_helper.from_array(moved, bias.name))


def another_tokenizer(parts: Parts) -> None:
    parts.tokenizer.add_tokens(["zzzz"])


def another_calibration(parts: Parts) -> None:
    parts.facts["score_calibration"] = {
        "method": "platt", "slope": 1.0, "intercept": 0.25, "fitted_on": "dev",
    }  # fmt: skip


def another_template(parts: Parts) -> None:
    parts.facts["inputs"]["ad_text"]["separator"] = " | "


def another_name(parts: Parts) -> None:
    parts.facts["model"]["name"] = "renamed"


def other_figures(parts: Parts) -> None:
    parts.facts["quality"] = {"served": {"auc": 0.5}}
    parts.facts["tool_versions"] = {"torch": "99"}


def fewer_golden_pairs(parts: Parts) -> None:
    del parts.golden[5:]


@pytest.mark.parametrize(
    "change", [another_bias, another_tokenizer, another_calibration, another_template]
)
def test_whatever_moves_a_score_makes_another_version(
    parts: Parts, tmp_path: Path, change: Callable[[Parts], None]
) -> None:
    before = parts.write(tmp_path / "before").model.version
    change(parts)
    assert parts.write(tmp_path / "after").model.version != before


@pytest.mark.parametrize("change", [another_name, other_figures, fewer_golden_pairs])
def test_what_moves_no_score_leaves_the_version(
    parts: Parts, tmp_path: Path, change: Callable[[Parts], None]
) -> None:
    before = parts.write(tmp_path / "before").model.version
    change(parts)
    assert parts.write(tmp_path / "after").model.version == before


def test_an_older_bundle_is_replaced_as_a_whole(parts: Parts, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    parts.write(out)
    (out / "left_over.bin").write_bytes(b"of an older schema")
    another_calibration(parts)
    manifest = parts.write(out)
    assert names_in(out) == FILES
    assert read_manifest(out).model.version == manifest.model.version
    assert names_in(tmp_path) == {"bundle"}


def test_an_empty_folder_may_be_filled(parts: Parts, tmp_path: Path) -> None:
    parts.write(tmp_path)
    assert names_in(tmp_path) == FILES


def test_a_file_or_a_folder_with_other_things_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    for target in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(ExportError, match="exists and is not a bundle"):
            check_target(target)


def test_the_manifest_of_something_else_does_not_make_a_folder_a_bundle(tmp_path: Path) -> None:
    # Web apps and browser extensions have a manifest.json too; theirs would be deleted.
    (tmp_path / "manifest.json").write_text('{"name": "My web app"}', encoding="utf-8")
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    with pytest.raises(ExportError, match="exists and is not a bundle"):
        check_target(tmp_path)


def test_a_bundle_that_fails_its_self_test_is_not_written_and_the_old_one_stays(
    parts: Parts, tmp_path: Path
) -> None:
    out = tmp_path / "bundle"
    old = parts.write(out)
    first = parts.golden[0]
    parts.golden[0] = GoldenPair(first.query, first.ad_text, (first.logits[0] + 1,))
    with pytest.raises(GoldenMismatch):
        parts.write(out)
    assert read_manifest(out) == old
    assert names_in(tmp_path) == {"bundle"}


def test_the_old_bundle_comes_back_when_the_last_step_fails(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "served"
    old = parts.write(out)
    rename = Path.rename

    def full_disk(self: Path, target: Path) -> Path:
        if self.name == "bundle":  # the new one, in its temporary folder
            raise OSError("no space left")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", full_disk)
    another_calibration(parts)
    with pytest.raises(OSError, match="no space left"):
        parts.write(out)
    assert read_manifest(out) == old
    assert names_in(tmp_path) == {"served"}


def test_a_target_below_a_file_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(ExportError, match="file is not a folder that can be written to"):
        check_target(tmp_path / "file" / "bundle")
    check_target(tmp_path / "far" / "down")
