"""`adrel.json`: what a user of an adapter or a weight delta must know, beside its weights."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from model_export.errors import ExportError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance  # it has no other name

FACTS_FILE = "adrel.json"

T = TypeVar("T")


def write_facts(folder: Path, facts: DataclassInstance) -> None:
    """Write the facts into the folder."""
    text = json.dumps(asdict(facts), indent=2, sort_keys=True)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")


def read_facts_file(
    folder: Path,
    parse: Callable[[Mapping[str, Any]], T],
    refusal: Callable[[Path, Exception], ExportError],
) -> T:
    """The facts in the folder.

    Args:
        folder: Of the weights.
        parse: What the file's fields say.
        refusal: The error, given the file and what is wrong with it.

    Raises:
        ExportError: The file is missing, no JSON, or lacks a field: what `refusal` gives.
    """
    path = folder / FACTS_FILE
    try:
        return parse(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise refusal(path, error) from error
