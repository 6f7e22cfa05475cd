"""The `finetune` command: its options, and what they become."""

from __future__ import annotations

import argparse
from pathlib import Path

from model_export.errors import ExportError
from model_export.pair_options import add_max_grade, max_grade_of
from model_export.printed_report import print_report
from model_export.recipe import (
    DEFAULT_BASE,
    LOSSES_OF_HEAD,
    REPORT_FILE,
    USUAL,
    FinetuneRecipe,
    recipe_for,
)
from model_export.recipe_options import (
    BATCH_PAIRS,
    LEARNING_RATE,
    SEED,
    WARMUP_SHARE,
    WEIGHT_DECAY,
    add_numbers,
    add_overwrite,
    given,
    require_usable,
)

POOLINGS = ("cls", "mean", "cat4")  # of `Pooling`, whose module imports torch


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    add = parser.add_argument
    for name, text in (
        ("train", "labelled pairs (JSONL or CSV); repeatable"),
        ("dev", "held-out pairs: they choose the epoch and fit the score calibration; repeatable"),
    ):
        add(f"--{name}", type=Path, action="append", required=True, metavar="FILE", help=text)
    add_max_grade(parser)
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the adapter, checkpoint")
    add_overwrite(parser)
    add("--base", metavar="DIR_OR_ID", help=f"encoder to start from; default: {DEFAULT_BASE}")
    add("--resume", action="store_true", help="go on with a run for --out that was stopped")
    # No defaults from here on: what is not given is the approach's own.
    recipe = parser.add_argument_group("recipe; in brackets what an approach takes by itself")
    add = recipe.add_argument
    losses = dict.fromkeys(loss for some in LOSSES_OF_HEAD.values() for loss in some)
    add("--approach", choices=list(USUAL), help="lora: an adapter; full, features: a checkpoint")
    add("--head", choices=list(LOSSES_OF_HEAD), help="one logit, two classes, or ordered grades")
    add("--loss", choices=list(losses), help="bce, or cross-entropy where the head has classes")
    add("--pooling", choices=POOLINGS, help="what a linear head reads (features: mean)")
    add("--keep", choices=["best", "last"], help="epoch to write, by the dev pairs (best)")
    numbers = (
        ("epochs", int, "most passes over the labelled pairs"),
        ("patience", int, "epochs without a better one that end the training; 0 never"),
        LEARNING_RATE,
        WEIGHT_DECAY,
        WARMUP_SHARE,
        BATCH_PAIRS,
        ("list_pairs", int, "most ads of a query that a ranking loss compares at once"),
        ("hard_negatives", int, "ads a query that BM25 finds near and nobody judged, as label 0"),
        ("max_pair_tokens", int, "pairs are cut to so many tokens"),
        ("lora_rank", int, "of the updates"),
        ("imitation_pairs", int, "pairs of the first stage; 0 leaves it out"),
        ("teacher_share", float, "weight of sentence similarity in the labels"),
        ("rater_share", float, "weight of the raters' votes in the labels, where there are any"),
        SEED,
    )
    add_numbers(recipe, numbers, _usual)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train a model, and print its report.

    Returns:
        Exit code 0.

    Raises:
        ExportError: Options, files or a base that cannot be used; says why.
    """
    max_grade = max_grade_of(arguments)
    recipe = recipe_for(**{**given(arguments, FinetuneRecipe), "max_grade": max_grade})
    names = [path.name for path in arguments.dev]
    if len(set(names)) < len(names):
        raise ExportError(f"two --dev files have one name, which figures go by: {sorted(names)}")

    from model_export.finetune import finetune

    require_usable(arguments.out, REPORT_FILE, overwrite=arguments.overwrite)
    print_report(
        lambda: finetune(
            arguments.train,
            arguments.dev,
            arguments.base or DEFAULT_BASE,
            arguments.out,
            recipe,
            resume=arguments.resume,
            tell=print,
        )
    )
    return 0


def _usual(name: str) -> str:
    """What each approach takes; one number where they agree."""
    values = {approach: getattr(recipe_for(approach), name) for approach in USUAL}
    if len(set(values.values())) == 1:
        return f"{values['lora']:g}"
    return ", ".join(f"{approach} {value:g}" for approach, value in values.items())
