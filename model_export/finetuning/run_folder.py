"""The folder of a training under way: what it trains, and the checkpoints to go on from."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model_export.errors import ExportError

FACTS_FILE = "run.json"

STATE_FILE = "trainer_state.json"
"""The file that transformers' Trainer writes last into a checkpoint."""


def run_folder(out: Path) -> Path:
    """Where the training for `out` keeps its checkpoints until it is done."""
    return out.with_name(out.name + ".training")


def open_run(folder: Path, facts: Mapping[str, Any], *, resume: bool) -> None:
    """Make the folder of a new run, or make sure that it holds the run to go on with.

    Args:
        folder: See `run_folder`.
        facts: All that the trained weights depend on, as JSON can hold it.
        resume: Whether to go on with a run that was stopped; a new one begins where there is none.

    Raises:
        ExportError: There is a stopped run and nobody said to resume it, or it is of other facts.
    """
    file = folder / FACTS_FILE
    if not any(folder.glob("*/checkpoint-*")):  # new, or stopped before anything was learnt
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")
        return
    if not resume:
        raise ExportError(
            f"{folder} holds a training that was stopped: go on with --resume, or remove it"
        )
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ExportError(f"{file} cannot be read, nor its run resumed: {error}") from error
    now = json.loads(json.dumps(facts))
    changed = sorted(key for key in {*stored, *now} if stored.get(key) != now.get(key))
    if changed:
        raise ExportError(
            f"{folder} holds a training that differs in {', '.join(changed)}: give the "
            "options and files that it was started with, in their order, or remove it"
        )


def sha256_of_json(value: Any) -> str:  # noqa: ANN401  # whatever JSON can hold
    """Hash of a value in hex, so that a run may depend on much and its folder say it in short."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def close_run(folder: Path) -> None:
    """Remove it all: what it was for is written."""
    shutil.rmtree(folder)


def last_whole_checkpoint(folder: Path) -> Path | None:
    """The Trainer's newest checkpoint that was written to its end; None without one."""
    whole = [path for path in folder.glob("checkpoint-*") if _is_whole(path)]
    return max(whole, key=lambda path: int(path.name.rpartition("-")[2]), default=None)


def _is_whole(checkpoint: Path) -> bool:
    try:
        json.loads((checkpoint / STATE_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True
