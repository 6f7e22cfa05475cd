"""Writing a trained model: beside its place first, then file by file into it, each whole."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance  # it has no other name


MODEL_FILES = (
    "adapter_*",
    "added_tokens.json",
    "adrel.json",
    "adrel_head.*",
    "config.json",
    "distil_report.json",
    "merges.txt",
    "model*.safetensors*",
    "pack_report.json",
    "pretraining_report.json",
    "score_calibration.json",
    "sentencepiece.bpe.model",
    "special_tokens_map.json",
    "spm.model",
    "tokenizer.*",
    "tokenizer_config.json",
    "training_report.json",
    "vocab.*",
    "weight_delta.safetensors",
)
"""Names of all files that an adapter, a checkpoint or a weight delta written here may consist of.

One of them that is left from an older model would be read as part of the next one.
"""


def partial_folder(out: Path) -> Path:
    """Where to write what shall be in `out`; what a stopped run left there is gone."""
    partial = out.with_name(out.name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    return partial


def write_report(folder: Path, name: str, report: DataclassInstance) -> None:
    """Write a report as JSON into the folder, which is made if it is not there.

    Raises:
        ValueError: It holds a number that JSON has no word for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(asdict(report), indent=2, allow_nan=False)
    (folder / name).write_text(text + "\n", encoding="utf-8")


def move_into(partial: Path, out: Path) -> None:
    """Put a model that was written in its place, instead of the one that may be there.

    Files of `out` that no model here consists of stay: notes, a model card.

    Args:
        partial: As `partial_folder` gave it.
        out: The place.
    """
    out.mkdir(parents=True, exist_ok=True)
    written = {file.name for file in partial.iterdir()}
    for pattern in MODEL_FILES:
        for old in out.glob(pattern):
            if old.name not in written:
                old.unlink()
    for name in written:
        (partial / name).replace(out / name)
    partial.rmdir()
