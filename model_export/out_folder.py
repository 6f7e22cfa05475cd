"""Writing a trained model: beside its place first, then file by file into it, each whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import DataclassInstance  # it has no other name


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


def move_into(partial: Path, out: Path, replaced: Iterable[str] = ()) -> None:
    """Put what was written in its place; files of `out` that it does not replace stay.

    Args:
        partial: As `partial_folder` gave it.
        out: The place.
        replaced: Patterns of files of an older model that may have no successor.
    """
    out.mkdir(parents=True, exist_ok=True)
    for pattern in replaced:
        for old in out.glob(pattern):
            old.unlink()
    for file in partial.iterdir():
        file.replace(out / file.name)
    partial.rmdir()
