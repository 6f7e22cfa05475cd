"""Bundles that tests of both halves share. torch is imported only by tests that need one."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings

from tests.examples import USUAL
from tests.tiny_models import write_bert

# Read when the hub's client is imported, so set before: a test that would download fails at once.
os.environ["HF_HUB_OFFLINE"] = "1"

# Small matrices gain nothing from more threads, which wait for each other where cores are few.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# How long an example takes says more about the machine's neighbours than about the code.
settings.register_profile("adrel", deadline=None, max_examples=USUAL)
settings.register_profile("long", deadline=None, max_examples=20 * USUAL)
settings.load_profile("adrel")  # --hypothesis-profile has the last word


@pytest.fixture(scope="session")
def tiny_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small BERT sequence classifier."""
    return write_bert(tmp_path_factory.mktemp("checkpoint") / "tiny")


def export_tiny(checkpoint: Path, out: Path, precision: Literal["fp32", "int8"]) -> Path:
    """A bundle of a small model, at `out`."""
    from model_export.checkpoint import load_checkpoint
    from model_export.export import export_bundle
    from tests.export_options import quick

    loaded = load_checkpoint(str(checkpoint), None, None)
    export_bundle(loaded, quick(precision), out, report=lambda _: None)
    return out


@pytest.fixture(scope="session")
def tiny_bundle_fp32(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the small model, unquantized."""
    return export_tiny(tiny_checkpoint, tmp_path_factory.mktemp("fp32") / "bundle", "fp32")


@pytest.fixture(scope="session")
def tiny_bundle_int8(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the small model in row-wise int8."""
    return export_tiny(tiny_checkpoint, tmp_path_factory.mktemp("int8") / "bundle", "int8")
