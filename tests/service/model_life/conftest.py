from __future__ import annotations

from pathlib import Path

import pytest

from service.batching.planner import BatchLimits
from service.model_life.loaded_model import ModelSource
from tests.bundle_variants import link, of_another_version

LIMITS = BatchLimits(max_pairs=8, max_padded_tokens=4096, max_padding_ratio=0.1)


@pytest.fixture(scope="session")
def one(tiny_bundle_int8: Path) -> Path:
    return tiny_bundle_int8


@pytest.fixture(scope="session")
def other(one: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another version of the same model."""
    return of_another_version(one, tmp_path_factory.mktemp("other") / "bundle-2")


@pytest.fixture
def source(one: Path, tmp_path: Path) -> ModelSource:
    """Reads a link, which is at `one` to begin with."""
    link(one, tmp_path / "live")
    return ModelSource(tmp_path / "live", "cpu", LIMITS, cache_bytes=2**20)
