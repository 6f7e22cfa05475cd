from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.startup_errors import BundleCorrupt, BundleMissing
from service.workers.pin import MANIFEST, Pin, files_of

FILES = {"model.onnx": "graph", "tokenizer.json": "words"}


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    at = tmp_path / "operators" / "live"
    at.mkdir(parents=True)
    for name, text in FILES.items():
        (at / name).write_text(text)
    list_files(at, dict.fromkeys(FILES, "sha"))
    return at


def list_files(bundle: Path, files: Any) -> None:  # noqa: ANN401  # any JSON
    (bundle / MANIFEST).write_text(json.dumps({"files_sha256": files}))


def n_open() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_other_processes_read_what_it_holds_when_the_folder_is_gone(
    bundle: Path, tmp_path: Path
) -> None:
    pin = Pin.of(bundle, tmp_path / "root")
    manifest = (bundle / MANIFEST).read_text()
    for file in bundle.iterdir():
        file.unlink()
    bundle.rmdir()
    code = "import pathlib, sys; [print(pathlib.Path(one).read_text()) for one in sys.argv[1:]]"
    files = [str(pin.path / name) for name in (*FILES, MANIFEST)]
    read = subprocess.run(
        [sys.executable, "-c", code, *files], capture_output=True, text=True, check=True
    )
    assert read.stdout.splitlines() == [*FILES.values(), manifest]


def test_its_path_ends_as_the_bundles_own_does_for_messages_and_the_history(
    bundle: Path, tmp_path: Path
) -> None:
    assert str(Pin.of(bundle, tmp_path / "root").path) == f"{tmp_path}/root{bundle}"


def test_a_manifest_that_is_overwritten_in_place_stays_as_it_was(
    bundle: Path, tmp_path: Path
) -> None:
    pin = Pin.of(bundle, tmp_path / "root")
    list_files(bundle, {"model.onnx": "another"})
    assert files_of((pin.path / MANIFEST).read_bytes()) == dict.fromkeys(FILES, "sha")


def test_what_is_dropped_leaves_nothing_behind(bundle: Path, tmp_path: Path) -> None:
    n_open_before = n_open()
    pin = Pin.of(bundle, tmp_path / "root")
    assert n_open() == n_open_before + len(FILES)
    pin.drop()
    assert n_open() == n_open_before
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("name", ["absent", "pipe", "folder", "..", "../live/model.onnx", "a\0b"])
def test_what_is_no_file_of_the_bundle_is_left_to_who_opens_it(
    name: str, bundle: Path, tmp_path: Path
) -> None:
    os.mkfifo(bundle / "pipe")
    (bundle / "folder").mkdir()
    list_files(bundle, {name: "sha", "model.onnx": "sha"})
    pin = Pin.of(bundle, tmp_path / "root")
    assert sorted(one.name for one in pin.path.iterdir()) == [MANIFEST, "model.onnx"]


@pytest.mark.parametrize("manifest", [b"", b"\xff", b"[]", b"{}", b'{"files_sha256": 1}'])
def test_a_manifest_that_lists_nothing_is_held_for_who_says_what_is_wrong_with_it(
    manifest: bytes, bundle: Path, tmp_path: Path
) -> None:
    (bundle / MANIFEST).write_bytes(manifest)
    pin = Pin.of(bundle, tmp_path / "root")
    assert [one.name for one in pin.path.iterdir()] == [MANIFEST]
    assert (pin.path / MANIFEST).read_bytes() == manifest


def test_no_bundle_is_told_by_its_own_path(tmp_path: Path) -> None:
    with pytest.raises(BundleMissing, match=f"no bundle at {tmp_path}:"):
        Pin.of(tmp_path, tmp_path / "root")
    assert not (tmp_path / "root").exists()


def test_a_file_that_cannot_be_read_is_named_and_none_stays_open(
    bundle: Path, tmp_path: Path
) -> None:
    n_open_before = n_open()
    (bundle / "loop").symlink_to("loop")
    list_files(bundle, {"model.onnx": "sha", "loop": "sha"})
    with pytest.raises(BundleCorrupt, match=f"bundle at {bundle} cannot be read: .*'loop'"):
        Pin.of(bundle, tmp_path / "root")
    assert n_open() == n_open_before


def test_where_nothing_can_be_written_nothing_stays_open(bundle: Path, tmp_path: Path) -> None:
    n_open_before = n_open()
    (tmp_path / "root").touch()
    with pytest.raises(NotADirectoryError):
        Pin.of(bundle, tmp_path / "root")
    assert n_open() == n_open_before
