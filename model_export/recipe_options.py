"""What the commands that train have in common: options of a recipe, and where a model may go."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from model_export.errors import ExportError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from pathlib import Path

Number = tuple[str, type[int] | type[float], str]
"""Name of a recipe's field, its type, and what to say of it."""

LEARNING_RATE: Number = ("learning_rate", float, "its peak")
WARMUP_SHARE: Number = ("warmup_share", float, "part of the steps in which the learning rate grows")
WEIGHT_DECAY: Number = ("weight_decay", float, "AdamW's")
BATCH_PAIRS: Number = ("batch_pairs", int, "pairs per step")
SEED: Number = ("seed", int, "of everything random")


def add_numbers(
    parser: argparse._ArgumentGroup,  # argparse has no public name for it
    numbers: Iterable[Number],
    usual: Callable[[str], str],
) -> None:
    """Give the parser an option for each number; none has a default.

    Args:
        parser: Group of the recipe.
        numbers: See `Number`.
        usual: What to say, by name, of the value that is taken where none is given.
    """
    for name, kind, text in numbers:
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=kind, metavar="X", help=f"{text} ({usual(name)})")


def given(arguments: argparse.Namespace, recipe: type[Any]) -> dict[str, Any]:
    """Those of the recipe's fields that the command line names."""
    return {
        field.name: value
        for field in fields(recipe)
        if (value := getattr(arguments, field.name, None)) is not None
    }


def add_overwrite(parser: argparse.ArgumentParser) -> None:
    """Give the parser `--overwrite`, for `require_usable`."""
    parser.add_argument(
        "--overwrite", action="store_true", help="replace the model that --out already holds"
    )


def require_usable(out: Path, report_file: str, *, overwrite: bool) -> None:
    """Never write over a folder that holds something else, nor unasked over an older model.

    Args:
        out: Where a model is to be written.
        report_file: Name of the file by which one of the same command is known.
        overwrite: Whether an older model may be replaced.

    Raises:
        ExportError: The folder is not empty and may not be written to; says why.
    """
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    if not (out / report_file).is_file():
        raise ExportError(
            f"{out} exists and is nothing that this command wrote; choose another --out"
        )
    if not overwrite:
        raise ExportError(
            f"{out} already holds a model of this command; choose another --out, or replace it "
            "with --overwrite"
        )
