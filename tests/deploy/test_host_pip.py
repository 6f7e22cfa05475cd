from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy.repository import DEPLOY

SCRIPT = DEPLOY / "docker" / "host_pip.sh"

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def options_and_settings(folder: Path, **pip: str) -> tuple[list[str], list[str]]:
    """What the script prints, and what it writes, where pip is told `pip` and nothing else."""
    file = folder / "pip.conf"
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHON": sys.executable,
        "PIP_CONFIG_FILE": os.devnull,  # none of this machine's
        **{f"PIP_{name.upper()}": value for name, value in pip.items()},
    }
    done = subprocess.run(
        ["bash", str(SCRIPT), str(file)],  # noqa: S607  # the one that a user's shell finds
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines(), file.read_text(encoding="utf-8").splitlines()


def test_the_build_is_told_what_pip_is_told_here_and_keeps_it_in_no_layer(tmp_path: Path) -> None:
    options, settings = options_and_settings(tmp_path, index_url="https://mirror.example/simple")
    assert settings == ["[global]", "index-url = https://mirror.example/simple"]
    assert options == [f"--secret=id=pip_conf,src={tmp_path / 'pip.conf'}"]


def test_folders_of_wheels_and_certificates_can_be_read_in_the_build(tmp_path: Path) -> None:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    certificate = tmp_path / "authority" / "ca.crt"
    certificate.parent.mkdir()
    certificate.touch()
    options, _ = options_and_settings(tmp_path, find_links=str(wheels), cert=str(certificate))
    assert options[1:] == [
        f"--volume={folder}:{folder}:ro" for folder in (certificate.parent, wheels)
    ]


def test_an_index_of_files_that_is_there_is_readable_with_what_lies_beside_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "index" / "simple").mkdir(parents=True)
    index = tmp_path / "index"
    options, _ = options_and_settings(
        tmp_path, extra_index_url=f"file://{index}/simple file://{tmp_path}/absent/simple"
    )
    assert options[1:] == [f"--volume={index}:{index}:ro"]
