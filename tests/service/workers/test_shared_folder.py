from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from service.startup_errors import BundleMissing
from service.workers.shared_folder import BUNDLE, GRAPHS, PinnedBundle
from tests.bundle_variants import link


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    at = tmp_path / "folder"
    (at / GRAPHS).mkdir(parents=True)
    return at


def bundle(at: Path, graph: str) -> Path:
    """Made such that its graph's content and that one's hash are the same word."""
    at.mkdir()
    (at / "manifest.json").write_text(json.dumps({"files_sha256": {"model.onnx": graph}}))
    (at / "model.onnx").write_text(graph)
    return at


def served(folder: Path) -> str:
    return (folder / BUNDLE / "model.onnx").read_text()


def n_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_what_is_pinned_stays_until_it_is_asked_to_follow(tmp_path: Path, folder: Path) -> None:
    link(bundle(tmp_path / "old", "1"), tmp_path / "live")
    pinned = PinnedBundle(folder, tmp_path / "live")
    link(bundle(tmp_path / "new", "2"), tmp_path / "live")
    assert served(folder) == "1"
    before = pinned.advance()
    assert served(folder) == "2"
    pinned.go_back(before)
    assert served(folder) == "1"


def test_a_folder_that_is_deleted_and_put_there_anew_is_not_followed_either(
    tmp_path: Path, folder: Path
) -> None:
    live = bundle(tmp_path / "live", "1")
    pinned = PinnedBundle(folder, live)
    shutil.rmtree(live)
    assert served(folder) == "1"
    bundle(live, "2")
    assert served(folder) == "1"
    pinned.advance()
    assert served(folder) == "2"


def test_bundles_that_serve_no_more_are_let_go_with_their_weights(
    tmp_path: Path, folder: Path
) -> None:
    for graph in ("1", "2"):
        (folder / GRAPHS / graph).mkdir()
    link(bundle(tmp_path / "one", "1"), tmp_path / "live")
    pinned = PinnedBundle(folder, tmp_path / "live")
    n_open_before = n_open()
    link(bundle(tmp_path / "two", "2"), tmp_path / "live")
    pinned.advance()
    pinned.go_back(pinned.advance())
    pinned.tidy()
    assert [graph.name for graph in (folder / GRAPHS).iterdir()] == ["2"]
    assert len(list(folder.glob(f"{BUNDLE}-*"))) == 1
    assert n_open() == n_open_before
    assert served(folder) == "2"


def test_links_that_lead_in_a_circle_are_an_absent_bundle_and_the_pinned_one_stays(
    tmp_path: Path, folder: Path
) -> None:
    at = tmp_path / "live"
    at.symlink_to(bundle(tmp_path / "good", "1"))
    pinned = PinnedBundle(folder, at)
    at.unlink()
    at.symlink_to(at)
    with pytest.raises(BundleMissing):
        pinned.advance()
    assert served(folder) == "1"
