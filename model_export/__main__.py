"""Command line of the offline half: finetune, distil, export, evaluate, report.

python -m model_export export --out bundles/default            the default model
python -m model_export export --checkpoint DIR_OR_HUB_ID --out DIR
python -m model_export evaluate --bundle DIR --checkpoint DIR_OR_HUB_ID --pairs FILE
python -m model_export report --bundle DIR                     its page, from its report.json
python -m model_export finetune --train FILE --dev FILE --out DIR
python -m model_export distil --products FILE --queries FILE --dev FILE --out DIR
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from model_export.errors import ExportError
from service.errors import StartupError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        Exit code: 0, or 1 with the reason on stderr.
    """
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
    except ModuleNotFoundError as error:  # the command is there with any extra, also the client's
        print(
            f"adrel: no module {error.name}; it needs its extra: pip install '.[export]'",
            file=sys.stderr,
        )
        return 1
    except (ExportError, StartupError, OSError) as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    from model_export import distil_command, evaluate_command, export_command

    parser = argparse.ArgumentParser(
        prog="python -m model_export",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    export_command.add_to(
        commands.add_parser("export", help="checkpoint -> proven, calibrated bundle")
    )
    _add_report(commands.add_parser("report", help="draw a bundle's report.html again"))
    evaluate_command.add_to(
        commands.add_parser("evaluate", help="quality of models on labelled pairs, side by side")
    )
    _add_finetune(commands.add_parser("finetune", help="labelled pairs -> adapter"))
    distil_command.add_to(commands.add_parser("distil", help="teacher -> smaller checkpoint"))
    return parser


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    parser.set_defaults(run=_report)


def _add_finetune(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--train",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="labelled pairs (JSONL or CSV); repeatable",
    )
    add(
        "--dev",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="held-out pairs, for the figures and the score calibration; repeatable",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the adapter")
    add("--base", metavar="DIR_OR_ID", help="encoder to start from; default: all-MiniLM-L6-v2")
    # No defaults here: what is not given is the recipe's, which is the default model's.
    add("--epochs", type=int)
    add("--learning-rate", type=float)
    add("--batch-pairs", type=int)
    add("--lora-rank", type=int)
    add("--max-pair-tokens", type=int)
    add("--imitation-pairs", type=int, help="pairs of the first stage; 0 leaves it out")
    add("--seed", type=int)
    parser.set_defaults(run=_finetune)


def _report(arguments: argparse.Namespace) -> int:
    from model_export.report.files import draw_again

    print(draw_again(arguments.bundle))
    return 0


def _finetune(arguments: argparse.Namespace) -> int:
    from model_export.adapter import is_adapter
    from model_export.finetune import finetune
    from model_export.recipe import DEFAULT_BASE, FinetuneRecipe

    out = arguments.out
    if out.exists() and not is_adapter(out) and not (out.is_dir() and not any(out.iterdir())):
        raise ExportError(f"{out} exists and is not an adapter; choose another --out or remove it")
    given = {
        field.name: value
        for field in fields(FinetuneRecipe)
        if (value := getattr(arguments, field.name, None)) is not None
    }
    base = arguments.base or DEFAULT_BASE
    with contextlib.redirect_stdout(sys.stderr):  # the trainer prints; stdout is for the report
        report = finetune(
            arguments.train, arguments.dev, base, arguments.out, FinetuneRecipe(**given)
        )
    print(json.dumps(asdict(report), indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
