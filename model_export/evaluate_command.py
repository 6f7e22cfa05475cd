"""The `evaluate` command: its options, and what they become."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from model_export.errors import ExportError
from model_export.pair_options import add_max_grade, max_grade_of
from model_export.recipe import DEFAULT_BASE

if TYPE_CHECKING:  # slow to import
    from model_export.evaluation.document import EvaluationOptions
    from model_export.evaluation.models import Scored
    from model_export.pairs import LabelledPair

STDOUT = "-"

# Those that only mean something for a checkpoint.
CHECKPOINT_ONLY = ("relevant_label", "grades", "allow_pickle", "max_length")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    from model_export.pair_files import PairsFormat

    models = parser.add_argument_group("models, each a row; the others are compared with the first")
    add = models.add_argument
    # Both into one list: the order of the command line is that of the rows.
    add(
        "--bundle",
        dest="models",
        type=lambda value: ("bundle", value),
        action="append",
        default=[],
        metavar="DIR",
        help="a bundle, as it would serve; repeatable",
    )
    add(
        "--checkpoint",
        dest="models",
        type=lambda value: ("checkpoint", value),
        action="append",
        metavar="DIR_OR_ID",
        help="a checkpoint or an adapter, through torch; repeatable",
    )
    add("--baselines", action="store_true",
        help="also word overlap, BM25, and cosines of the base encoder's embeddings")  # fmt: skip
    add("--base", default=DEFAULT_BASE, metavar="DIR_OR_ID", help="that encoder: %(default)s")
    add("--relevant-label", metavar="LABEL", help="of the checkpoints, as in export")
    add("--grades", metavar="WORST,..,BEST", help="of the checkpoints, as in export")
    add("--allow-pickle", action="store_true", help="for the checkpoints, as in export")
    add("--max-length", type=int, metavar="TOKENS", help="of their pairs, as in export")
    data = parser.add_argument_group("pairs")
    add = data.add_argument
    add(
        "--pairs",
        type=Path,
        required=True,
        action="append",
        metavar="FILE",
        help="labelled pairs, JSONL or CSV; repeatable, judged together",
    )
    add("--format", choices=get_args(PairsFormat),
        help="of the files; default: csv for names in .csv, else jsonl")  # fmt: skip
    add_max_grade(data)
    figures = parser.add_argument_group("figures")
    add = figures.add_argument
    add("--k", type=int, default=10, help="places of NDCG@k (%(default)s)")
    add("--resamples", type=int, default=1000, metavar="N",
        help="of the queries, for the intervals; 0 leaves them out (%(default)s)")  # fmt: skip
    add("--seed", type=int, default=0, help="of the resamples (%(default)s)")
    add("--json", metavar="FILE",
        help="every number for programs; '-' is stdout, and the tables go to stderr")  # fmt: skip
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge the models and show the tables.

    Returns:
        Exit code 0.

    Raises:
        ExportError, StartupError: Options, pairs or models that cannot be used; says why.
    """
    from model_export.evaluation.document import evaluation, refuse_one_class
    from model_export.evaluation.text_table import text_of
    from model_export.pairs import read_pairs

    options, max_grade = _options(arguments), max_grade_of(arguments)
    pairs, sources = [], []
    for path in arguments.pairs:
        read = read_pairs(path, arguments.format, max_grade, _tell)
        pairs += read
        sources += [pair.source or path.name for pair in read]
    refuse_one_class(pairs, [str(path) for path in arguments.pairs])
    document = evaluation(pairs, sources, _score(arguments, pairs), options)
    text = text_of(document)
    if arguments.json == STDOUT:
        print(text, file=sys.stderr)
        print(_json(document))
        return 0
    if arguments.json is not None:  # first: who reads the tables may stop early, as head does
        Path(arguments.json).write_text(_json(document) + "\n", encoding="utf-8")
    print(text)
    return 0


def _options(arguments: argparse.Namespace) -> EvaluationOptions:
    from model_export.evaluation.document import EvaluationOptions

    if not arguments.models and not arguments.baselines:
        raise ExportError("nothing to judge: give --bundle, --checkpoint or --baselines")
    if arguments.json not in (None, STDOUT) and not Path(arguments.json).parent.is_dir():
        raise ExportError(f"--json: there is no folder {Path(arguments.json).parent}")
    for name in CHECKPOINT_ONLY:
        is_given = getattr(arguments, name) is not None and getattr(arguments, name) is not False
        if is_given and not any(kind == "checkpoint" for kind, _ in arguments.models):
            raise ExportError(
                f"--{name.replace('_', '-')} is for a --checkpoint; a bundle states its own"
            )
    for name, least in (("k", 1), ("resamples", 0), ("seed", 0)):
        if getattr(arguments, name) < least:
            raise ExportError(f"--{name} must be at least {least}, got {getattr(arguments, name)}")
    return EvaluationOptions(arguments.k, arguments.resamples, arguments.seed)


def _score(arguments: argparse.Namespace, pairs: list[LabelledPair]) -> list[Scored]:
    from tqdm import tqdm

    from model_export.evaluation.baselines import score_baselines
    from model_export.evaluation.models import score_with_bundle, score_with_checkpoint

    scored = []
    for kind, reference in arguments.models:
        with tqdm(total=len(pairs), unit="pair", desc=reference, file=sys.stderr) as progress:
            if kind == "bundle":
                scored.append(score_with_bundle(Path(reference), pairs, progress.update))
            else:
                head = {name: getattr(arguments, name) for name in CHECKPOINT_ONLY}
                scored.append(score_with_checkpoint(reference, pairs, progress.update, **head))
    if arguments.baselines:
        scored += score_baselines(pairs, arguments.base, show_progress=True)
    return scored


def _tell(line: str) -> None:
    print(line, file=sys.stderr)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False)
