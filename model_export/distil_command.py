"""The `distil` command: its options, and what they become."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from model_export.distillation.recipe import LAYER_RULES, REPORT_FILE, DistilRecipe
from model_export.errors import ExportError
from model_export.pair_options import add_max_grade, max_grade_of
from model_export.printed_report import print_report
from model_export.recipe_options import (
    BATCH_PAIRS,
    LEARNING_RATE,
    SEED,
    add_numbers,
    add_overwrite,
    given,
    require_usable,
)
from model_export.shipped_models import DEFAULT_MODEL, SHIPPED_MODELS

if TYPE_CHECKING:  # slow to import
    from collections.abc import Callable

    from model_export.distillation.report import DistilReport
    from model_export.distillation.training import DevPairs
    from model_export.pairs import LabelledPair

DEFAULT_CACHE = Path(".teacher_logits")


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    usual = DistilRecipe()
    add = parser.add_argument
    add(
        "--teacher",
        default=str(SHIPPED_MODELS[DEFAULT_MODEL].folder),
        metavar="DIR_OR_ID",
        help="checkpoint with the head of its family (none of finetune --pooling), adapter or "
        "weight delta; default: the default model",
    )
    add("--relevant-label", metavar="LABEL", help="of the teacher, as in export")
    add("--grades", metavar="WORST,..,BEST", help="of the teacher, as in export")
    add(
        "--start",
        type=Path,
        metavar="DIR",
        help="a student of distil to go on from, instead of the teacher's layers",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the student's checkpoint")
    add_overwrite(parser)
    add("--resume", action="store_true", help="go on with a run for --out that was stopped")
    add(
        "--cache",
        type=Path,
        default=DEFAULT_CACHE,
        metavar="DIR",
        help="the teacher's logits, kept for the next run; default: %(default)s",
    )
    data = parser.add_argument_group("training data (JSONL or CSV); each repeatable")
    for name, text in (
        ("pairs", "pairs, with or without labels"),
        ("products", "ads to pair with queries; the pairs' ads join them"),
        ("queries", "files with queries (.txt: one a line); the pairs' queries join them"),
        ("dev", "held-out labelled pairs, which choose the best epoch"),
    ):
        data.add_argument(
            f"--{name}",
            type=Path,
            action="append",
            default=[],
            required=name == "dev",
            metavar="FILE",
            help=text,
        )
    add_max_grade(data)
    recipe = parser.add_argument_group("recipe")
    add = recipe.add_argument
    add("--n-layers", type=int, help=f"of the student ({usual.n_layers})")
    add(
        "--layers",
        metavar="RULE",
        help=f"which of the teacher's it starts from: {', '.join(LAYER_RULES)} or numbers from 0 "
        f"on, as in 0,2,5 ({usual.layers})",
    )
    add("--lora-rank", type=int, help=f"0 trains whole matrices ({usual.lora_rank})")
    add("--train-embeddings", action="store_true", default=None, help="the word vectors learn too")
    numbers = (
        ("label_weight", float, "of the labels against the teacher"),
        ("sampled_pairs", int, "pairs to make of products and queries"),
        ("pairs_per_query", int, "how many of them share a query"),
        ("pseudo_query_share", float, "part of them with a span of an ad's words as the query"),
        ("reworded_share", float, "part of them, on each side, with words swapped"),
        ("cut_share", float, "part of them with an ad that is cut short"),
        (
            "varied_pairs",
            int,
            "variations to make of the given pairs, half of either side with words swapped",
        ),
        ("hidden_weight", float, "of the teacher's hidden states; 0 asks it only once a pair"),
        ("epochs", int, "passes over the pairs"),
        LEARNING_RATE,
        BATCH_PAIRS,
        SEED,
    )
    add_numbers(recipe, numbers, lambda name: f"{getattr(usual, name):g}")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train a student, and print its report.

    Returns:
        Exit code 0.

    Raises:
        ExportError: Options, files or a teacher that cannot be used; says why.
    """
    recipe, max_grade = DistilRecipe(**given(arguments, DistilRecipe)), max_grade_of(arguments)
    require_usable(arguments.out, REPORT_FILE, overwrite=arguments.overwrite)
    if arguments.start is not None and arguments.layers is not None:
        raise ExportError("--layers says what a student starts from, and so does --start: give one")

    from model_export.distillation.distil import Folders, distil
    from model_export.distillation.report import read_report
    from model_export.distillation.sources import read_sources
    from model_export.reference_logits import load_original

    if arguments.start is not None:
        n_layers = len(read_report(arguments.start)["layers"])
        if arguments.n_layers is not None and arguments.n_layers != n_layers:
            raise ExportError(
                f"--n-layers is {arguments.n_layers}, and the student {arguments.start} has "
                f"{n_layers}; leave it out to go on from that one"
            )
        recipe = replace(recipe, n_layers=n_layers)

    def train() -> DistilReport:
        sources = read_sources(
            arguments.pairs,
            arguments.products,
            arguments.queries,
            max_grade=max_grade,
            tell=print,
        )
        dev = read_dev(arguments.dev, max_grade, tell=print)
        teacher = load_original(
            arguments.teacher, relevant_label=arguments.relevant_label, grades=arguments.grades
        )
        folders = Folders(arguments.out, arguments.cache, arguments.start)
        return distil(teacher, sources, dev, folders, recipe, resume=arguments.resume, tell=print)

    print_report(train)
    return 0


def read_dev(paths: list[Path], max_grade: float | None, tell: Callable[[str], None]) -> DevPairs:
    """Held-out pairs by the name of their file.

    Args:
        paths: Of the files.
        max_grade: As in `read_pairs`.
        tell: Told what is doubtful in them.

    Raises:
        BadPairsFile: A file cannot be used.
        ExportError: One class is missing, or two files have the same name.
    """
    from model_export.evaluation.document import refuse_one_class
    from model_export.pairs import read_pairs

    dev: dict[str, list[LabelledPair]] = {}
    for path in paths:
        if path.name in dev:
            raise ExportError(f"two --dev files have the name {path.name}, which figures go by")
        dev[path.name] = read_pairs(path, max_grade=max_grade, tell=tell)
        refuse_one_class(dev[path.name], [str(path)])
    return dev
