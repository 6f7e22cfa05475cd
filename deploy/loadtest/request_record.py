"""When a run began, and one line for each of its requests: what the figures are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from deploy.loadtest.answer_verdict import OK, PairFate


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """One request and what came of it. Instants are seconds since 1970.

    Attributes:
        due_s: When it should have been sent: in an open loop the arrival, whatever held it up.
        sent_s: When it was.
        answered_s: When the whole answer was there, or the failure was known.
        status: HTTP status; 0 where no answer came.
        pairs: How many met which fate.
        cached_pairs: How many scores the service's cache had.
        failure: What went wrong; None for a full success.
    """

    due_s: float
    sent_s: float
    answered_s: float
    status: int
    pairs: Mapping[PairFate, int]
    cached_pairs: int = 0
    failure: str | None = None

    @property
    def latency_ms(self) -> float:
        """From when it was due to the whole answer: waiting to be sent counts."""
        return (self.answered_s - self.due_s) * 1000

    @property
    def is_answered(self) -> bool:
        """Whether scores came, in time or not."""
        return self.status == OK


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run: when it began, and its requests in the order in which they were due."""

    started_s: float
    requests: Sequence[RequestRecord]


class RecordWriter:
    """Writes a file of its own in a folder that the processes of a run share."""

    def __init__(self, folder: Path, process: int, started_s: float) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"requests-{process}.jsonl"
        self._file: TextIO = path.open("w", encoding="utf-8")
        self._file.write(json.dumps({"started_s": started_s}) + "\n")

    def write(self, record: RequestRecord) -> None:
        """Add one line."""
        fields = {name: getattr(record, name) for name in RequestRecord.__slots__}
        self._file.write(json.dumps(fields) + "\n")

    def close(self) -> None:
        """Everything is on disk afterwards."""
        self._file.close()


def read_run(folder: Path) -> RecordedRun:
    """What all processes wrote; a run that began in none has no requests, and began at 0."""
    started_s, requests = [], []
    for path in folder.glob("requests-*.jsonl"):
        first, *lines = path.read_text(encoding="utf-8").splitlines()
        started_s.append(json.loads(first)["started_s"])
        requests += [RequestRecord(**json.loads(line)) for line in lines]
    requests.sort(key=lambda one: one.due_s)
    return RecordedRun(min(started_s, default=0.0), requests)
