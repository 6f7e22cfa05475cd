"""The `export` command: its options, and what they become."""

from __future__ import annotations

import argparse
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from model_export.errors import ExportError
from model_export.pair_options import add_max_grade, max_grade_of
from model_export.shipped_models import DEFAULT_MODEL, SHIPPED_MODELS, load_shipped

if TYPE_CHECKING:  # torch and its kin are slow to import
    from model_export.checkpoint import Checkpoint

# Those that only mean something for a checkpoint of one's own.
CHECKPOINT_ONLY = ("relevant_label", "grades", "allow_pickle")

TOLERANCE_HELP = {
    "worst_logit": "largest change of a logit",
    "mean_score": "mean change of the score",
    "worst_score": "largest change of the score",
    "rank_agreement": "least Spearman correlation of the scores",
    "batch_spread": "largest change of a logit in other company",
    "auc_loss": "what the labelled pairs' AUC may lose",
    "ndcg_loss": "what their NDCG@10 may lose",
}


def add_to(parser: argparse.ArgumentParser) -> None:
    """Give the parser this command's options."""
    from model_export.options import ExportOptions, Precision, Target
    from model_export.parity import TOLERANCES, tolerance_option

    add, defaults = parser.add_argument, ExportOptions()
    add(
        "--checkpoint",
        metavar="DIR_OR_ID",
        help="sequence-classification model, a local folder or a hub id, or a weight delta; with "
        "--adapter, its base weights; default: --model",
    )
    add("--adapter", type=Path, metavar="DIR", help="adapter made by finetune")
    add(
        "--model",
        choices=tuple(SHIPPED_MODELS),
        help=f"one of the models that come with adrel, by its layers ({DEFAULT_MODEL})",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the bundle")
    add("--name", help="model name in answers and metrics; default: from the checkpoint")
    add("--max-length", type=int, metavar="TOKENS", help="longest pair; default: the checkpoint's")
    head = parser.add_argument_group("what the logits mean, where their labels do not say it")
    add = head.add_argument
    add("--relevant-label", metavar="LABEL", help="the class, or its index, that means relevant")
    add("--grades", metavar="WORST,..,BEST", help="all classes, or their indices, in this order")
    weights = parser.add_argument_group("numbers")
    add = weights.add_argument
    add("--precision", choices=get_args(Precision), default=defaults.precision, help="%(default)s")
    add(
        "--target",
        choices=get_args(Target),
        help="what the graph is made for: avx2 (default; exact on every CPU) and avx512 have int8 "
        "weights of 7 bits, vnni and arm64 of 8; cuda (default for fp16) is for fp16 and fp32",
    )
    add("--fallback", choices=("fp32",), help="serve this where the precision fails the gate")
    add(
        "--allow-pickle",
        action="store_true",
        help="open pickled weights where there are no safetensors; pickles can carry code, which "
        "torch's restricted unpickler refuses",
    )
    labelled = parser.add_argument_group("labelled pairs")
    add = labelled.add_argument
    add(
        "--calibrate",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="labelled pairs (JSONL or CSV) for score calibration, quality figures and the gate; "
        "repeatable",
    )
    add_max_grade(labelled)
    add("--no-latency", action="store_true", help="leave latency out of the report: same bytes")
    gate = parser.add_argument_group(
        "the gate: past any of these, no bundle is written; defaults depend on the precision, see "
        "model_export/README.md"
    )
    usual = TOLERANCES["int8"]
    for name, text in TOLERANCE_HELP.items():
        gate.add_argument(
            tolerance_option(name),
            type=float,
            metavar="X",
            help=f"{text} (int8: {getattr(usual, name):g})",
        )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Export, and say where the bundle is.

    Returns:
        Exit code 0.

    Raises:
        ExportError: Nothing was written; the message says why.
    """
    from model_export.export import export_bundle
    from model_export.options import ExportOptions
    from model_export.pairs import read_pairs
    from model_export.training_reports import doubt_of

    options = ExportOptions(
        precision=arguments.precision,
        target=arguments.target or ("cuda" if arguments.precision == "fp16" else "avx2"),
        fall_back=arguments.fallback is not None,
        tolerances=_tolerances(arguments),
        with_latency=not arguments.no_latency,
    )
    max_grade = max_grade_of(arguments)
    labelled = [
        pair
        for path in arguments.calibrate
        for pair in read_pairs(path, max_grade=max_grade, tell=print)
    ]
    checkpoint = _load(arguments)
    own = arguments.adapter or arguments.checkpoint
    if own is not None and (doubt := doubt_of(Path(own))):
        print(f"warning: {doubt}")
    manifest = export_bundle(checkpoint, options, arguments.out, labelled)
    print(f"bundle {manifest.model.name} {manifest.model.version} is ready in {arguments.out}")
    return 0


def _tolerances(arguments: argparse.Namespace) -> dict[str, float]:
    from model_export.parity import Tolerances, tolerance_option

    given = {}
    for entry in fields(Tolerances):
        option = tolerance_option(entry.name)
        value = getattr(arguments, option.removeprefix("--").replace("-", "_"))
        if value is not None:
            given[entry.name] = value
    return given


def _load(arguments: argparse.Namespace) -> Checkpoint:
    from model_export.adapter_checkpoint import load_adapted
    from model_export.checkpoint import load_checkpoint, with_max_length
    from model_export.delta_checkpoint import load_delta_checkpoint
    from model_export.weight_delta import is_delta

    if arguments.model and (arguments.checkpoint or arguments.adapter):
        raise ExportError("--model is one that comes with adrel: give it or a model of your own")
    own = arguments.checkpoint is not None and arguments.adapter is None
    for name in CHECKPOINT_ONLY:
        if getattr(arguments, name) and not own:
            raise ExportError(
                f"--{name.replace('_', '-')} is for a --checkpoint without an adapter: an adapter "
                "states its head, and has no pickles"
            )
    if own and is_delta(Path(arguments.checkpoint)):
        checkpoint = load_delta_checkpoint(Path(arguments.checkpoint), None, arguments.name)
    elif own:
        checkpoint = load_checkpoint(
            arguments.checkpoint,
            arguments.relevant_label,
            arguments.name,
            grades=arguments.grades,
            allow_pickle=arguments.allow_pickle,
        )
    elif arguments.adapter is not None:
        checkpoint = load_adapted(arguments.adapter, arguments.checkpoint, arguments.name)
    else:
        checkpoint = load_shipped(arguments.model or DEFAULT_MODEL, arguments.name)
    if arguments.max_length is not None:
        checkpoint = with_max_length(checkpoint, arguments.max_length)
    return checkpoint
