"""What the commands that read labelled pairs have in common: how their grades are read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from model_export.errors import ExportError

if TYPE_CHECKING:
    import argparse


def add_max_grade(parser: argparse._ActionsContainer) -> None:  # argparse has no public name for it
    """Give the parser or group `--max-grade`, for `max_grade_of`."""
    parser.add_argument(
        "--max-grade",
        type=float,
        metavar="G",
        help="the best grade of a grade and of raters, for rows without max_grade",
    )


def max_grade_of(arguments: argparse.Namespace) -> float | None:
    """The best grade that the command line states, as `read_pairs` takes it; None: it states none.

    Raises:
        ExportError: It is not over 0.
    """
    best: float | None = arguments.max_grade
    if best is not None and not 0 < best < float("inf"):
        raise ExportError(f"--max-grade must be over 0, got {best:g}")
    return best
