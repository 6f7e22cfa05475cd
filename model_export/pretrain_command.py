"""The `pretrain` command: its options, and what they become."""

from __future__ import annotations

import argparse
from pathlib import Path

from model_export.pretraining.recipe import REPORT_FILE, PretrainRecipe
from model_export.printed_report import print_report
from model_export.recipe import DEFAULT_BASE
from model_export.recipe_options import (
    LEARNING_RATE,
    SEED,
    WARMUP_SHARE,
    WEIGHT_DECAY,
    add_numbers,
    add_overwrite,
    given,
    require_usable,
)


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    usual = PretrainRecipe()
    add = parser.add_argument
    add(
        "--texts",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="ads (JSONL, CSV, or .txt with one a line); repeatable; no labels are read",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the encoder")
    add_overwrite(parser)
    add("--base", default=DEFAULT_BASE, metavar="DIR_OR_ID", help="to start from (%(default)s)")
    add("--resume", action="store_true", help="go on with a run for --out that was stopped")
    recipe = parser.add_argument_group("recipe")
    recipe.add_argument(
        "--next-sentence",
        action="store_true",
        default=None,
        help="learn also whether a description is the title's own (BERT)",
    )
    numbers = (
        ("mask_share", float, "part of the positions to guess"),
        ("held_out_share", float, "part of the texts to judge on"),
        ("epochs", int, "passes over the texts"),
        LEARNING_RATE,
        ("batch_texts", int, "texts per step"),
        WARMUP_SHARE,
        WEIGHT_DECAY,
        ("max_text_tokens", int, "texts are cut to so many tokens"),
        SEED,
    )
    add_numbers(recipe, numbers, lambda name: f"{getattr(usual, name):g}")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Train an encoder, and print its report.

    Returns:
        Exit code 0.

    Raises:
        ExportError: Options, files or a base that cannot be used; says why.
    """
    recipe = PretrainRecipe(**given(arguments, PretrainRecipe))
    require_usable(arguments.out, REPORT_FILE, overwrite=arguments.overwrite)

    from model_export.pretraining.pretrain import pretrain

    print_report(
        lambda: pretrain(
            arguments.texts,
            arguments.base,
            arguments.out,
            recipe,
            resume=arguments.resume,
            tell=print,
        )
    )
    return 0
