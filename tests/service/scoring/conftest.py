from __future__ import annotations

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def bundle(tiny_bundle_int8: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    return Path(shutil.copytree(tiny_bundle_int8, tmp_path / "bundle"))
