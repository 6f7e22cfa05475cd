"""The `pack` command: a student of distil as a weight delta that a repository can carry."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from model_export.pair_options import add_max_grade, max_grade_of
from model_export.recipe_options import add_overwrite, require_usable

USUAL_BASE = "sentence-transformers/all-MiniLM-L6-v2"
USUAL_MAX_BYTES = 2 * 1024 * 1024


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    add = parser.add_argument
    add(
        "--student",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder that distil wrote, of a student with the base's own embeddings: of a teacher "
        "that is an adapter, without --train-embeddings",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the delta")
    add_overwrite(parser)
    add(
        "--base",
        default=USUAL_BASE,
        metavar="DIR_OR_ID",
        help="base weights that the teacher was made from; default: %(default)s",
    )
    add(
        "--max-bytes",
        type=int,
        default=USUAL_MAX_BYTES,
        metavar="N",
        help="most bytes of the weights' file, which decide how coarse it is (%(default)s)",
    )
    add(
        "--dev",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="held-out labelled pairs, for the figures before and after and for the score "
        "calibration; repeatable",
    )
    add_max_grade(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the delta, and print its report.

    Returns:
        Exit code 0.

    Raises:
        ExportError: Nothing was written; the message says why.
    """
    from model_export.distil_command import read_dev
    from model_export.pack import PACK_REPORT_FILE, pack

    require_usable(arguments.out, PACK_REPORT_FILE, overwrite=arguments.overwrite)
    dev = read_dev(arguments.dev, max_grade_of(arguments), _tell)
    report = pack(
        arguments.student,
        arguments.base,
        dev,
        arguments.out,
        max_bytes=arguments.max_bytes,
        tell=_tell,
    )
    print(json.dumps(asdict(report), indent=2))
    return 0


def _tell(line: str) -> None:
    print(line, file=sys.stderr)
