"""One file of pairs to one file of scores, in this process: streamed, resumable, repeatable."""

from __future__ import annotations

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO, TextIO

from service.bulk.atomic_file import atomic_file
from service.bulk.errors import OutputExists, WrongArguments
from service.bulk.part_run import PartRun, RunningPart, RunPlan, identity_of, open_table, writer_of
from service.bulk.part_scorer import PartScorer
from service.bulk.part_store import PartRecord, PartStore, total
from service.bulk.progress import Progress
from service.bulk.table import PartSize, PartSpec, format_of
from service.scoring.bundle import Bundle

PARTS_AT_ONCE = 2  # while one is computed the next one is read


@dataclass(frozen=True, slots=True)
class FileJob:
    """What to score, and where to.

    Attributes:
        path: The input.
        out: The output; its name says its format.
        rejects: Where rows that cannot be scored go, as JSON Lines.
        resume: Go on with what a run that was stopped has left.
        limit_bytes: Longest row, and most text of a pair.
        size: Of a part.
    """

    path: Path
    out: Path
    rejects: Path
    resume: bool
    limit_bytes: int
    size: PartSize

    @property
    def parts_folder(self) -> Path:
        """Where the parts are until all are there."""
        return self.out.with_name(f"{self.out.name}.parts")


@dataclass(frozen=True, slots=True)
class Summary:
    """How a run ended.

    Attributes:
        record: Of the whole output.
        n_now: Rows that this run has done; fewer where it resumed another.
        elapsed_s: That it took for them.
    """

    record: PartRecord
    n_now: int
    elapsed_s: float


def score_file(
    job: FileJob,
    bundle: Bundle,
    threads: int,
    progress_to: TextIO,
    now_s: Callable[[], float] = time.monotonic,
) -> Summary:
    """Score every row of a file. The output is there, whole, when this returns.

    Args:
        job: What and where to.
        bundle: The model.
        threads: One-thread runs at once.
        progress_to: Where the progress is shown.
        now_s: Monotonic seconds.

    Raises:
        BulkError: There is no output; parts that are done stay for a resume.
        InferenceFailed: Likewise: the runtime failed.
        OSError: Likewise: the disk is full, or something may not be read or written.
    """
    store = PartStore(job.parts_folder, job.out.suffix.lower())
    _check_paths(job)
    table = open_table(job.path, job.limit_bytes)
    out_format = format_of(job.out)
    survey = table.survey(job.size, with_columns=out_format != "jsonl")
    plan = RunPlan(job.path, out_format, dataclasses.replace(survey, parts=()), job.limit_bytes)
    with ExitStack() as stack:
        scorer = stack.enter_context(PartScorer(bundle, threads, job.limit_bytes))
        stack.enter_context(store)
        run = PartRun(plan, table, scorer)
        store.hold(identity_of(plan, job.size, scorer.model_version), resume=job.resume)
        done = store.records()
        n_before = total(done.values()).rows
        progress = Progress(progress_to, now_s, survey.n_rows, n_before)
        todo = [part for part in survey.parts if part.number not in done]
        _score_parts(todo, run, store, progress.advance)
        record = total(store.records().values())
        elapsed_s = progress.end()
        numbers = range(len(survey.parts))
        with atomic_file(job.rejects) as file:
            _join([store.rejects_file(number) for number in numbers], file)
        with atomic_file(job.out) as file:
            writer_of(plan, table).whole([store.data_file(number) for number in numbers], file)
        store.remove()
    return Summary(record, record.rows - n_before, elapsed_s)


def _check_paths(job: FileJob) -> None:
    if len({path.resolve() for path in (job.path, job.out, job.rejects)}) < 3:
        raise WrongArguments("the input, the output and the rejects must be three different files")
    for path in (job.out, job.rejects):
        if not path.parent.is_dir():
            raise WrongArguments(f"{path}: there is no folder {path.parent}")
    if job.parts_folder.exists():
        return  # a stop in the last moment may have left some of them: they are written anew
    there = [path for path in (job.out, job.rejects) if path.exists()]
    if job.resume and len(there) == 2:
        raise OutputExists(
            f"nothing is left to resume: {job.out} and {job.rejects} are there, whole, of a run "
            "that has ended; whether of this input and model is not kept, so delete both to score "
            "anew"
        )
    for path in there:
        raise OutputExists(f"{path} exists already; delete it, or choose another name")


def _score_parts(
    todo: Sequence[PartSpec],
    run: PartRun,
    store: PartStore,
    on_progress: Callable[[int], None],
) -> None:
    running: deque[RunningPart] = deque()
    for spec in todo:
        running.append(run.start(spec))
        if len(running) == PARTS_AT_ONCE:
            store.write(run.finish(running.popleft(), on_progress))
    while running:
        store.write(run.finish(running.popleft(), on_progress))


def _join(parts: Sequence[Path], out: BinaryIO) -> None:
    for path in parts:
        with path.open("rb") as part:
            copyfileobj(part, out)
