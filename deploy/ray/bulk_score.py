"""Bulk scoring on a Ray cluster: a file of pairs to a folder of parts.

    python -m deploy.ray.bulk_score --bundle bundles/default --in pairs.parquet --out scores

The parts are those of `score-file`, byte for byte. A part is one task: whichever node runs it
writes it whole under its number, so a node that dies costs what it was doing, and nothing is there
twice. `--resume` skips the parts that are there.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from deploy.ray.part_task import TaskOptions, score_part
from service.bulk.atomic_file import write_atomically
from service.bulk.command import ALL_SCORED, FAILED, SOME_REJECTED
from service.bulk.errors import BulkError
from service.bulk.part_run import RunPlan, identity_of, open_table
from service.bulk.part_store import PartRecord, PartStore, total
from service.bulk.progress import Progress
from service.bulk.table import FileFormat, PartSize, PartSpec, format_of
from service.scoring.bundle_files import verified_manifest
from service.settings import Settings
from service.startup_errors import StartupError

MAX_RETRIES = 5
"""Of a part whose process or node died. A part that brings processes down must end the run."""

PARTS_IN_LINE = 1000
"""Tasks that Ray knows of at once: enough to show an autoscaler what there is to do."""

MANIFEST_FILE = "_manifest.json"


class ClusterFailed(Exception):
    """A part failed for good, or the cluster is gone."""


def main(argv: Sequence[str] | None = None) -> int:
    """Score a file on a cluster, and say how it went.

    Returns:
        Exit code, as of `score-file`.
    """
    options = _parser().parse_args(argv)
    try:
        _connect(options.address)
        record = score_on_cluster(
            options.input.resolve(),
            options.out.resolve(),
            options.out_format or format_of(options.input),
            options.bundle.resolve(),
            resume=options.resume,
            threads=options.threads_per_task,
            size=PartSize(rows=options.rows_per_part),
        )
    except (BulkError, StartupError, OSError, ClusterFailed) as error:
        print(f"adrel: {error}", file=sys.stderr)
        return FAILED
    print(f"{json.dumps(dataclasses.asdict(record))} in {options.out}")
    return SOME_REJECTED if record.rejected else ALL_SCORED


def score_on_cluster(
    path: Path,
    out: Path,
    out_format: FileFormat,
    bundle: Path,
    *,
    resume: bool = False,
    threads: int = 1,
    size: PartSize | None = None,
) -> PartRecord:
    """Score every row of a file by the tasks of the cluster that this process is connected to.

    Args:
        path: The input.
        out: Folder of the parts.
        out_format: Of the parts.
        bundle: The model.
        resume: Go on with the parts that are there.
        threads: Cores of a task.
        size: Of a part; None takes the usual one.

    Returns:
        The numbers of all parts, which are in `MANIFEST_FILE` too.

    Raises:
        BulkError: It cannot be done, or not be resumed; parts that are done stay.
        StartupError: The bundle cannot be used.
        ClusterFailed: A part failed for good, or the cluster is gone.
    """
    size = size or PartSize()
    limit_bytes = Settings.model_fields["max_body_bytes"].default
    version = verified_manifest(bundle).model.version
    survey = open_table(path, limit_bytes).survey(size, with_columns=out_format != "jsonl")
    plan = RunPlan(path, out_format, dataclasses.replace(survey, parts=()), limit_bytes)
    options = TaskOptions(plan, out, bundle, version, threads)
    with ExitStack() as stack:
        store = stack.enter_context(PartStore(out, f".{out_format}"))
        store.hold(identity_of(plan, size, version), resume=resume)
        done = store.records()
        progress = Progress(sys.stderr, time.monotonic, survey.n_rows, total(done.values()).rows)
        todo = [part for part in survey.parts if part.number not in done]
        for record in _scored(todo, options):
            progress.advance(record.rows)
        progress.end()
        record = total(store.records().values())
        facts = {
            **dataclasses.asdict(record),
            "parts": len(survey.parts),
            "model_version": version,
            "input_sha256": survey.sha256,
        }
        write_atomically(out / MANIFEST_FILE, json.dumps(facts, indent=2).encode())
    return record


def _scored(todo: Sequence[PartSpec], options: TaskOptions) -> Iterator[PartRecord]:
    """Each part's numbers, in the order in which they are done."""
    import ray  # noqa: PLC0415  # the environment that it reads is set first

    task = ray.remote(score_part).options(
        num_cpus=options.threads, max_retries=MAX_RETRIES, name="adrel-part"
    )
    shared = ray.put(options)
    waiting = iter(todo)
    running: list[Any] = []
    while True:
        while len(running) < PARTS_IN_LINE and (part := next(waiting, None)) is not None:
            running.append(task.remote(shared, part))
        if not running:
            return
        finished, running = ray.wait(running)
        try:
            records = ray.get(finished)
        except ray.exceptions.RayTaskError as error:  # its own text is another machine's traceback
            raise ClusterFailed(error.cause) from error
        except ray.exceptions.RayError as error:
            raise ClusterFailed(error) from error
        yield from records


def _connect(address: str | None) -> None:
    # All of these are read when ray is imported, or when it starts its processes.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        # Despite its name, on every system: off, a cluster of one machine keeps to the loopback.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray  # noqa: PLC0415  # as above

    ray.init(address=address or "local", include_dashboard=None if address else False,
             log_to_driver=False)  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m deploy.ray.bulk_score",
        description="Score every pair of a file on a Ray cluster, into a folder of parts.",
        epilog="Input, output and bundle must be at the same paths on every node.",
    )
    add = parser.add_argument
    add("--bundle", type=Path, default=Path("bundles/default"), metavar="DIR", help="%(default)s")
    add("--in", dest="input", type=Path, required=True, metavar="FILE", help="as of score-file")
    add("--out", type=Path, required=True, metavar="DIR", help="folder of the parts")
    add("--out-format", choices=("parquet", "jsonl", "csv"), help="of the parts; the input's")
    add("--resume", action="store_true", help="skip the parts that are there")
    add("--address", help="of a running cluster, or auto; without it one starts on this machine")
    add("--threads-per-task", type=int, default=1, metavar="N", help="cores a task (%(default)s)")
    add(
        "--rows-per-part",
        type=int,
        default=PartSize().rows,
        metavar="N",
        help="rows a task: what a dead node costs (%(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
