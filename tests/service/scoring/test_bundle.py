from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from service.domain import Ad
from service.scoring import bundle as bundle_module
from service.scoring.bundle import open_bundle, read_manifest, self_test, sha256_of
from service.scoring.calibration import Temperature
from service.scoring.manifest import Manifest
from service.startup_errors import BundleCorrupt, BundleIncompatible, BundleMissing, GoldenMismatch


@pytest.fixture
def bundle(tiny_bundle_int8: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(tiny_bundle_int8, tmp_path / "bundle"))


def edit_manifest(bundle: Path, change: Callable[[dict[str, Any]], None]) -> None:
    file = bundle / "manifest.json"
    fields = json.loads(file.read_text(encoding="utf-8"))
    change(fields)
    file.write_text(json.dumps(fields), encoding="utf-8")


def test_a_sound_bundle_opens_scores_and_passes_its_self_test(bundle: Path) -> None:
    opened = open_bundle(bundle)
    assert self_test(opened) <= opened.manifest.golden.logit_tolerance
    pairs = opened.encode("red shoe", [Ad("1", title="red shoe"), Ad("2", text="bag")])
    logits = opened.model.logits(pairs)
    scores = opened.to_scores(logits)
    assert ((scores > 0) & (scores < 1)).all()
    assert opened.to_margins(logits).tolist() == logits[:, 0].tolist()  # a head with one logit


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleMissing, match="model_export export"):
        open_bundle(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "golden_pairs.jsonl"])
def test_a_changed_file_is_named_with_both_hashes(bundle: Path, name: str) -> None:
    expected = read_manifest(bundle).files_sha256[name]
    with (bundle / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BundleCorrupt, match=name) as caught:
        open_bundle(bundle)
    assert expected in str(caught.value)
    assert sha256_of(bundle / name) in str(caught.value)


def test_a_missing_file_is_named(bundle: Path) -> None:
    (bundle / "tokenizer.json").unlink()
    with pytest.raises(BundleCorrupt, match=r"tokenizer\.json is missing"):
        open_bundle(bundle)


def test_a_file_outside_of_the_bundle_is_never_opened(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update({"../secret": "0" * 64}))
    (bundle.parent / "secret").write_text("x", encoding="utf-8")
    with pytest.raises(BundleCorrupt, match="secret is missing"):
        open_bundle(bundle)


def test_a_manifest_that_lists_no_graph_is_refused(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["files_sha256"].pop("model.onnx"))
    with pytest.raises(BundleCorrupt, match=r"lists no model\.onnx"):
        open_bundle(bundle)


def test_another_schema_version_is_refused_with_both_numbers(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields.update(schema_version=99))
    with pytest.raises(BundleIncompatible, match=r"99.*reads 2"):
        open_bundle(bundle)


def test_a_manifest_with_a_faulty_field_is_refused_by_its_name(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["inputs"].update(max_length_tokens=0))
    with pytest.raises(BundleCorrupt, match="max_length_tokens"):
        open_bundle(bundle)


def test_a_manifest_that_is_not_json_is_refused(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(BundleCorrupt, match="not a manifest"):
        open_bundle(bundle)


def test_inputs_that_the_graph_does_not_take_are_refused(bundle: Path) -> None:
    def fewer_inputs(fields: dict[str, Any]) -> None:
        fields["inputs"]["names"] = ["input_ids"]
        unversioned = Manifest.model_validate(fields)
        fields["model"]["version"] = unversioned.content_version()

    edit_manifest(bundle, fewer_inputs)
    with pytest.raises(BundleIncompatible, match="token_type_ids"):
        open_bundle(bundle)


def test_a_manifest_that_was_edited_by_hand_is_refused(bundle: Path) -> None:
    other = Temperature(temperature=2, fitted_on="dev").model_dump()
    edit_manifest(bundle, lambda fields: fields.update(score_calibration=other))
    with pytest.raises(BundleCorrupt, match="changed after the export"):
        open_bundle(bundle)


def rewrite_golden(bundle: Path, content: str) -> None:
    file = bundle / "golden_pairs.jsonl"
    file.write_text(content, encoding="utf-8")
    digest = sha256_of(file)
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update({file.name: digest}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has 0 golden pairs, the manifest says 32"),
        ('{"query": 7, "ad_text": "x", "logits": [1]}', "must be strings"),
        ('{"query": "q", "ad_text": "x", "logits": [1, 2]}', "2 logits, the head has 1"),
        ('{"query": "q", "ad_text": "x", "logits": ["x"]}', "line 1 is not a golden pair"),
    ],
)
def test_golden_pairs_that_prove_nothing_are_refused(
    bundle: Path, content: str, message: str
) -> None:
    rewrite_golden(bundle, content)
    with pytest.raises(BundleCorrupt, match=message):
        self_test(open_bundle(bundle))


def test_a_machine_that_computes_other_logits_fails_the_self_test(bundle: Path) -> None:
    lines = (bundle / "golden_pairs.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    rows[7]["logits"][0] += 5.0
    rewrite_golden(bundle, "\n".join(json.dumps(row) for row in rows))
    with pytest.raises(GoldenMismatch, match=r"1 of 32 .* 0\.2 .* worst by 5: pair 8, query"):
        self_test(open_bundle(bundle))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xfe",
        b'{"query": "\\ud800", "ad_text": "", "logits": [1]}',
        b'{"query": "", "ad_text": "", "logits": [1' + b"0" * 400 + b"]}",
    ],
)
def test_golden_pairs_that_break_the_reader_are_refused_with_their_line(
    bundle: Path, content: bytes
) -> None:
    (bundle / "golden_pairs.jsonl").write_bytes(content)
    hashes = {"golden_pairs.jsonl": sha256_of(bundle / "golden_pairs.jsonl")}
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update(hashes))
    with pytest.raises(BundleCorrupt, match="line 1 is not a golden pair"):
        self_test(open_bundle(bundle))


def test_a_file_that_cannot_be_read_is_a_fault_of_the_bundle(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> str:
        raise PermissionError(13, "Permission denied", "model.onnx")

    monkeypatch.setattr(bundle_module, "sha256_of", refuse)
    with pytest.raises(BundleCorrupt, match=r"cannot be read: .*Permission denied.*model\.onnx"):
        open_bundle(bundle)


def test_the_facts_that_the_checks_rest_on_cannot_be_edited(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["golden"].update(logit_tolerance=1e9))
    with pytest.raises(BundleCorrupt, match="changed after the export"):
        open_bundle(bundle)
