from __future__ import annotations

from pathlib import Path

import pytest

from service.scoring import bundle_files
from service.scoring.bundle_files import read_manifest, sha256_of, verified_manifest
from service.scoring.calibration import Temperature
from service.startup_errors import BundleCorrupt, BundleIncompatible, BundleMissing
from tests.service.scoring.manifest_edits import edit_manifest


def test_a_folder_without_a_manifest_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleMissing, match="model_export export"):
        verified_manifest(tmp_path)


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer.json", "golden_pairs.jsonl"])
def test_a_changed_file_is_named_with_both_hashes(bundle: Path, name: str) -> None:
    expected = read_manifest(bundle).files_sha256[name]
    with (bundle / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(BundleCorrupt, match=name) as caught:
        verified_manifest(bundle)
    assert expected in str(caught.value)
    assert sha256_of(bundle / name) in str(caught.value)


def test_a_missing_file_is_named(bundle: Path) -> None:
    (bundle / "tokenizer.json").unlink()
    with pytest.raises(BundleCorrupt, match=r"tokenizer\.json is missing"):
        verified_manifest(bundle)


def test_a_file_outside_of_the_bundle_is_never_opened(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["files_sha256"].update({"../secret": "0" * 64}))
    (bundle.parent / "secret").write_text("x", encoding="utf-8")
    with pytest.raises(BundleCorrupt, match="secret is missing"):
        verified_manifest(bundle)


def test_a_manifest_that_lists_no_graph_is_refused(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["files_sha256"].pop("model.onnx"))
    with pytest.raises(BundleCorrupt, match=r"lists no model\.onnx"):
        verified_manifest(bundle)


def test_another_schema_version_is_refused_with_both_numbers(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields.update(schema_version=99))
    with pytest.raises(BundleIncompatible, match=r"99.*reads 2"):
        verified_manifest(bundle)


def test_a_manifest_with_a_faulty_field_is_refused_by_its_name(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["inputs"].update(max_length_tokens=0))
    with pytest.raises(BundleCorrupt, match="max_length_tokens"):
        verified_manifest(bundle)


def test_a_manifest_that_is_not_json_is_refused(bundle: Path) -> None:
    (bundle / "manifest.json").write_text("{", encoding="utf-8")
    with pytest.raises(BundleCorrupt, match="not a manifest"):
        verified_manifest(bundle)


def test_a_manifest_that_was_edited_by_hand_is_refused(bundle: Path) -> None:
    other = Temperature(temperature=2, fitted_on="dev").model_dump()
    edit_manifest(bundle, lambda fields: fields.update(score_calibration=other))
    with pytest.raises(BundleCorrupt, match="changed after the export"):
        verified_manifest(bundle)


def test_a_file_that_cannot_be_read_is_a_fault_of_the_bundle(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> str:
        raise PermissionError(13, "Permission denied", "model.onnx")

    monkeypatch.setattr(bundle_files, "sha256_of", refuse)
    with pytest.raises(BundleCorrupt, match=r"cannot be read: .*Permission denied.*model\.onnx"):
        verified_manifest(bundle)


def test_the_facts_that_the_checks_rest_on_cannot_be_edited(bundle: Path) -> None:
    edit_manifest(bundle, lambda fields: fields["golden"].update(logit_tolerance=1e9))
    with pytest.raises(BundleCorrupt, match="changed after the export"):
        verified_manifest(bundle)
