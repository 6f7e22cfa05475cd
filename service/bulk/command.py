"""`python -m service score-file`: its options, its summary and its exit codes."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from service.bulk.errors import BulkError
from service.bulk.score_file import FileJob, Summary, score_file
from service.bulk.table import PartSize
from service.command_line import OptionParser
from service.cpu import usable_cores
from service.errors import InferenceFailed
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.golden_pairs import self_test
from service.startup_errors import StartupError

ALL_SCORED, FAILED, SOME_REJECTED = 0, 1, 3
STOPPED = 128  # and the number of the signal
BUNDLE_VARIABLE = "ADREL_BUNDLE"  # the one setting of the service that is the same here


def main(argv: Sequence[str], limit_bytes: int, size: PartSize | None = None) -> int:
    """Score a file, and say how it went.

    Args:
        argv: What follows `score-file` on the command line.
        limit_bytes: Longest row, and most text of a pair: the service's own limit of a request.
        size: Of a part; None takes the usual one.

    Returns:
        Exit code: 0 every row has a score, 1 no output, 3 complete but for rows that were set
        aside, 128 + n after the signal n. (2 for options that do not exist.)
    """
    options = _parser().parse_args(argv)
    rejects = options.rejects or options.out.with_name(f"{options.out.name}.rejects.jsonl")
    job = FileJob(
        options.input, options.out, rejects, options.resume, limit_bytes, size or PartSize()
    )
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    try:
        bundle = open_bundle(options.bundle)
        self_test(bundle)
        summary = score_file(job, bundle, options.threads, sys.stderr)
    except (BulkError, StartupError, InferenceFailed) as error:
        print(f"adrel: {error}", file=sys.stderr)
        return FAILED
    except OSError as error:
        print(f"adrel: {_about_disk(error, job)}", file=sys.stderr)
        return FAILED
    print(_told(summary, job, bundle))
    return SOME_REJECTED if summary.record.rejected else ALL_SCORED


def _stop(number: int, _: object) -> None:
    sys.exit(STOPPED + number)


def _about_disk(error: OSError, job: FileJob) -> str:
    where, what = error.filename or job.out.parent, error.strerror or error
    goes_on = "; --resume goes on with what is done" if job.parts_folder.exists() else ""
    return f"{where}: {what}{goes_on}"


def _told(summary: Summary, job: FileJob, bundle: Bundle) -> str:
    record, model = summary.record, bundle.manifest.model
    rate = summary.n_now / summary.elapsed_s if summary.elapsed_s else 0.0
    resumed = "" if summary.n_now == record.rows else f" ({summary.n_now:,} of them in this run)"
    return (
        f"rows {record.rows:,}{resumed}, scored {record.scored:,} in {job.out}, "
        f"rejected {record.rejected:,} in {job.rejects}, different pairs {record.pairs:,}, "
        f"{rate:,.0f} rows/s, model {model.name} {model.version}"
    )


def _parser() -> argparse.ArgumentParser:
    parser = OptionParser(
        prog="python -m service score-file",
        description="Score every pair of a file. JSON Lines (.jsonl), CSV (.csv) and Parquet "
        "(.parquet), by the suffix of each name.",
        epilog="Exit codes: 0 every row has a score; 3 complete, and some rows were rejected; 1 no "
        "new output, the reason is on stderr; 2 wrong options; 128 + n stopped by signal n. After "
        "any stop, and after 1 once the reason is mended, --resume goes on. After 0 and 3 nothing "
        "is left to go on with: --resume then changes nothing and ends with 1.",
    )
    add = parser.add_argument
    add(
        "--bundle",
        type=Path,
        default=Path(os.environ.get(BUNDLE_VARIABLE) or "bundles/default"),
        metavar="DIR",
        help=f"the model; the variable {BUNDLE_VARIABLE}, as for the service, else bundles/default",
    )
    add(
        "--in",
        dest="input",
        type=Path,
        required=True,
        metavar="FILE",
        help="rows with query, and title (and description) or text; other columns are carried "
        "through",
    )
    add(
        "--out",
        type=Path,
        required=True,
        metavar="FILE",
        help="the same rows in the same order, with score, model_version and truncated",
    )
    add(
        "--rejects",
        type=Path,
        metavar="FILE",
        help="JSON Lines of the rows that are no pairs, with the reason of each "
        "(OUT.rejects.jsonl)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on with what a run that was stopped has left in OUT.parts; begin where there is "
        "none; refuse where a run has ended and OUT is there, whole",
    )
    add(
        "--threads",
        type=_positive,
        default=usable_cores(),
        metavar="N",
        help="batches at once, one thread each (as many as cores: %(default)s)",
    )
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number
