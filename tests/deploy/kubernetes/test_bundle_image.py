"""The init container that copies a bundle, run as it is but for its two folders."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.deploy.kubernetes.manifests import KUBERNETES
from tests.deploy.repository import read_yaml

MANIFEST = KUBERNETES / "components" / "bundle-image" / "bundle.yaml"
FILES = {"manifest.json": "{}", "onnx/model.onnx": "model"}
SERVED = {f"served/{name}": text for name, text in FILES.items()}


def copy(image: Path, volume: Path) -> None:
    [container] = read_yaml(MANIFEST)["spec"]["template"]["spec"]["initContainers"]
    [mount] = container["volumeMounts"]
    folders = {mount["mountPath"]: str(volume), " /bundle": f" {image}"}
    command = container["command"]
    for ours, here in folders.items():
        command = [part.replace(ours, here) for part in command]
    subprocess.run(command, check=True, timeout=30, capture_output=True)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle"
    for name, text in FILES.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return folder


def files(folder: Path) -> dict[str, str]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_text(encoding="utf-8") for path in found}


@pytest.mark.parametrize("earlier", ["", "served", "copying"])
def test_the_whole_bundle_is_there_whatever_an_earlier_run_has_left(
    earlier: str, image: Path, tmp_path: Path
) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    if earlier:
        half = volume / earlier
        half.mkdir()
        (half / "manifest.json").write_text("{", encoding="utf-8")
        (half / "old.json").write_text("of another model", encoding="utf-8")
    copy(image, volume)
    assert files(volume) == SERVED


def test_a_second_run_changes_nothing(image: Path, tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    for _ in range(2):
        copy(image, volume)
    assert files(volume) == SERVED


def test_a_copy_that_breaks_off_is_not_served(tmp_path: Path) -> None:
    volume = tmp_path / "volume"
    volume.mkdir()
    with pytest.raises(subprocess.CalledProcessError):
        copy(tmp_path / "nothing", volume)
    assert not (volume / "served").exists()
