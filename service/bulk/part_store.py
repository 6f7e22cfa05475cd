"""The folder of parts: what is done, and for which run, so that nothing is done twice.

    part-000000.csv             scored rows, in the form of the output
    _run/run.json               what the parts were made of
    _run/rejects-000000.jsonl   rows that were set aside
    _run/done-000000.json       the part's numbers; written last: without it a part is made again
    _run/lock                   held by the one run that may write

Every file appears whole, under a name that tells its content, so it does not matter who writes it,
or how often. What reads a folder as one table skips names that begin with an underscore.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from service.bulk.atomic_file import UNFINISHED, write_atomically
from service.bulk.errors import CannotResume, OutputExists, RunInProgress

LAYOUT = 1
"""Of the parts; another number makes a resume across releases refuse instead of mix."""

RUN_FILE = "run.json"
LOCK_FILE = "lock"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """All that decides the bytes of the parts.

    Attributes:
        input_sha256: Of the input.
        model_version: Of the model, which is a hash of all that decides its scores.
        form: Input and output format, and how large a part is.
        layout: See `LAYOUT`.
    """

    input_sha256: str
    model_version: str
    form: str
    layout: int = LAYOUT


@dataclass(frozen=True, slots=True)
class PartRecord:
    """The numbers of one part that is done, or of several together.

    Attributes:
        rows: Rows in.
        scored: Of these, how many have a score.
        rejected: How many were set aside.
        pairs: Different pairs that were computed.
    """

    rows: int = 0
    scored: int = 0
    rejected: int = 0
    pairs: int = 0


def total(records: Iterable[PartRecord]) -> PartRecord:
    """The sums."""
    columns = zip(*map(dataclasses.astuple, records), strict=True)
    return PartRecord(*map(sum, columns))


@dataclass(frozen=True, slots=True)
class FinishedPart:
    """What is written of a part."""

    number: int
    data: bytes
    rejects: bytes
    record: PartRecord


class PartStore:
    """Parts in a folder. Many may write parts; one run holds the folder: see `hold`."""

    def __init__(self, folder: Path, suffix: str) -> None:
        """Touch nothing yet.

        Args:
            folder: Of the parts.
            suffix: Of the files with scored rows: `.csv`.
        """
        self.folder = folder
        self._run = folder / "_run"
        self._suffix = suffix
        self._held = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def hold(self, identity: RunIdentity, *, resume: bool) -> None:
        """Make the folder this run's own; another process cannot until this one has ended.

        Args:
            identity: Of the run.
            resume: Go on with what is there.

        Raises:
            OutputExists: There are parts, and nobody said to go on with them.
            CannotResume: They are another run's.
            RunInProgress: Another process holds the folder.
        """
        for folder in (self.folder, self._run):
            folder.mkdir(exist_ok=True)
        lock = self._held.enter_context((self._run / LOCK_FILE).open("wb"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunInProgress(f"another run is writing {self.folder}") from None
        self._claim(identity, resume=resume)
        for unfinished in self.folder.rglob(f"{UNFINISHED}*"):
            unfinished.unlink(missing_ok=True)

    def records(self) -> dict[int, PartRecord]:
        """Of all parts that are done, by number."""
        return {
            int(path.stem.removeprefix("done-")): PartRecord(**json.loads(path.read_bytes()))
            for path in sorted(self._run.glob("done-*.json"))
        }

    def write(self, part: FinishedPart) -> None:
        """Put a part on the disk; it is done when this returns."""
        write_atomically(self.data_file(part.number), part.data)
        write_atomically(self.rejects_file(part.number), part.rejects)
        record = json.dumps(asdict(part.record)).encode()
        write_atomically(self._run / f"done-{part.number:06}.json", record)

    def data_file(self, number: int) -> Path:
        """The scored rows of a part."""
        return self.folder / f"part-{number:06}{self._suffix}"

    def rejects_file(self, number: int) -> Path:
        """Its rows that were set aside."""
        return self._run / f"rejects-{number:06}.jsonl"

    def remove(self) -> None:
        """Delete the folder, and nothing in it that is not ours."""
        # A stop in between must leave no part that is said to be done, and is not there.
        ours = sorted(self._run.glob("done-*.json"))
        ours += self.folder.glob(f"part-*{self._suffix}")
        ours += self._run.glob("rejects-*.jsonl")
        ours += [self._run / RUN_FILE, self._run / LOCK_FILE]
        for path in ours:
            path.unlink()
        self._run.rmdir()
        self.folder.rmdir()

    def _claim(self, identity: RunIdentity, *, resume: bool) -> None:
        file = self._run / RUN_FILE
        if not file.exists():
            write_atomically(file, json.dumps(asdict(identity), indent=2).encode())
            return
        if not resume:
            raise OutputExists(
                f"{self.folder} has parts of a run that was stopped; go on with --resume, or "
                "delete it"
            )
        differences = _differences(identity, RunIdentity(**json.loads(file.read_bytes())))
        if differences:
            raise CannotResume(
                f"cannot resume from {self.folder}: {'; '.join(differences)}; delete it to score "
                "everything anew"
            )


def _differences(now: RunIdentity, before: RunIdentity) -> Sequence[str]:
    told = []
    if now.input_sha256 != before.input_sha256:
        told.append(
            f"the input has changed (sha256 {now.input_sha256[:12]}, "
            f"was {before.input_sha256[:12]})"
        )
    if now.model_version != before.model_version:
        told.append(
            f"its parts were scored by model version {before.model_version}, the bundle is "
            f"{now.model_version}"
        )
    if (now.form, now.layout) != (before.form, before.layout):
        told.append(f"its parts have another form ({before.form}, this run's is {now.form})")
    return told
