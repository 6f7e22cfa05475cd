from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from service.workers.shared_folder import BUNDLE, GRAPHS, PinnedBundle
from tests.bundle_variants import link


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    at = tmp_path / "folder"
    (at / GRAPHS).mkdir(parents=True)
    return at


def bundle(at: Path, graph: str = "1") -> Path:
    at.mkdir()
    (at / "manifest.json").write_text(json.dumps({"files_sha256": {"model.onnx": graph}}))
    return at


def test_what_is_pinned_stays_until_it_is_asked_to_follow(tmp_path: Path, folder: Path) -> None:
    old, new = bundle(tmp_path / "old"), bundle(tmp_path / "new")
    link(old, tmp_path / "live")
    pinned = PinnedBundle(folder, tmp_path / "live")
    link(new, tmp_path / "live")
    pinned.refresh()
    assert (folder / BUNDLE).resolve() == old
    before = pinned.advance()
    assert (folder / BUNDLE).resolve() == new
    pinned.go_back(before)
    assert (folder / BUNDLE).resolve() == old


def test_where_the_pinned_one_is_gone_the_operators_is_better_than_none(
    tmp_path: Path, folder: Path
) -> None:
    old, new = bundle(tmp_path / "old"), bundle(tmp_path / "new")
    link(old, tmp_path / "live")
    pinned = PinnedBundle(folder, tmp_path / "live")
    link(new, tmp_path / "live")
    shutil.rmtree(old)
    pinned.refresh()
    assert (folder / BUNDLE).resolve() == new


def test_weights_of_other_bundles_are_forgotten(tmp_path: Path, folder: Path) -> None:
    for graph in ("1", "2"):
        (folder / GRAPHS / graph).mkdir()
    PinnedBundle(folder, bundle(tmp_path / "two", graph="2")).tidy()
    assert [graph.name for graph in (folder / GRAPHS).iterdir()] == ["2"]


def test_links_that_lead_in_a_circle_are_an_absent_bundle_and_no_crash(
    tmp_path: Path, folder: Path
) -> None:
    at = tmp_path / "live"
    at.symlink_to(bundle(tmp_path / "good"))
    pinned = PinnedBundle(folder, at)
    at.unlink()
    at.symlink_to(at)
    before = pinned.advance()
    assert not (folder / BUNDLE / "manifest.json").exists()
    pinned.go_back(before)
    assert (folder / BUNDLE / "manifest.json").exists()
