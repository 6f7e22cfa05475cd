"""Command line of the offline half: pretrain, finetune, distil, pack, export, evaluate, report.

python -m model_export export --out bundles/default            the default model
python -m model_export export --checkpoint DIR_OR_HUB_ID --out DIR
python -m model_export evaluate --bundle DIR --checkpoint DIR_OR_HUB_ID --pairs FILE
python -m model_export report --bundle DIR                     its page, from its report.json
python -m model_export finetune --train FILE --dev FILE --out DIR
python -m model_export pretrain --texts FILE --out DIR        an encoder for finetune --base
python -m model_export distil --products FILE --queries FILE --dev FILE --out DIR
python -m model_export pack --student DIR --dev FILE --out DIR
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from model_export.errors import ExportError
from service.command_line import OptionParser
from service.startup_errors import StartupError

EXIT_BROKEN_PIPE = 141
"""What a shell reports of a program that SIGPIPE has ended: 128 + 13."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Returns:
        Exit code: 0; 1 with the reason on stderr; 141, quietly, where whoever reads stdout has
        gone, as in `evaluate ... | head`.
    """
    try:
        try:
            return _run(argv)
        finally:
            sys.stdout.flush()  # here, since at its end Python would show a traceback
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it flushes once more
        return EXIT_BROKEN_PIPE


def _run(argv: Sequence[str] | None) -> int:
    try:
        arguments = _parser().parse_args(argv)
        code: int = arguments.run(arguments)
    except ModuleNotFoundError as error:  # the command is there with any extra, also the client's
        print(
            f"adrel: no module {error.name}; it needs its extra: pip install '.[export]'",
            file=sys.stderr,
        )
        return 1
    except BrokenPipeError:
        raise
    except (ExportError, StartupError, OSError) as error:
        print(f"adrel: {error}", file=sys.stderr)
        return 1
    return code


def _parser() -> argparse.ArgumentParser:
    from model_export import (
        distil_command,
        evaluate_command,
        export_command,
        finetune_command,
        pack_command,
        pretrain_command,
    )

    parser = OptionParser(
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
    finetune_command.add_to(
        commands.add_parser("finetune", help="labelled pairs -> adapter or checkpoint")
    )
    pretrain_command.add_to(
        commands.add_parser("pretrain", help="ad texts without labels -> encoder to start from")
    )
    distil_command.add_to(commands.add_parser("distil", help="teacher -> smaller checkpoint"))
    pack_command.add_to(commands.add_parser("pack", help="student -> delta on its base weights"))
    return parser


def _add_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bundle", type=Path, required=True, metavar="DIR")
    parser.set_defaults(run=_report)


def _report(arguments: argparse.Namespace) -> int:
    from model_export.report.files import draw_again

    print(draw_again(arguments.bundle))
    return 0


if __name__ == "__main__":
    sys.exit(main())
