"""What a worker process is told by the supervisor when it starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from service.workers.core_sets import CoreShare


@dataclass(frozen=True, slots=True)
class Inherited:
    """Descriptors that a worker has from the supervisor.

    Attributes:
        link: The worker's end.
        counts: Of `ConnectionCounts`.
        listener: The callers' socket.
        admin_listener: The operators', where there is one.
    """

    link: int
    counts: int
    listener: int
    admin_listener: int | None


@dataclass(frozen=True, slots=True)
class WorkerSpec:
    """One worker.

    Attributes:
        number: From 1; its log lines carry it.
        n_workers: How many there are.
        share: Of the cores.
        inherited: Descriptors.
        folder: The supervisor's own, of that run.
    """

    number: int
    n_workers: int
    share: CoreShare
    inherited: Inherited
    folder: Path

    def to_json(self) -> str:
        """As an argument of a command line."""
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """What `to_json` was called on."""
        fields = json.loads(text)
        share = fields["share"]
        return cls(
            fields["number"],
            fields["n_workers"],
            CoreShare(tuple(share["cores"]), share["threads"]),
            Inherited(**fields["inherited"]),
            Path(fields["folder"]),
        )
