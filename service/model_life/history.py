"""What is told of the models that serve and have served, and of the last reload."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from service.domain import ReloadResult


@dataclass(frozen=True, slots=True)
class Tenure:
    """A model's time of service.

    Attributes:
        name: Of the model.
        version: Likewise.
        bundle: Name of the folder that it was read from, links followed.
        since_s: Unix time at which it began to serve.
        until_s: Unix time at which another took over; None while it serves.
    """

    name: str
    version: str
    bundle: str
    since_s: float
    until_s: float | None = None


@dataclass(frozen=True, slots=True)
class ReloadReport:
    """How a reload ended.

    Attributes:
        result: In a word.
        at_s: Unix time of its end.
        took_s: Seconds from asking to the end, the old model's last pairs included.
        why: Of a failure; may name folders, so it is for operators.
        workers: How it ended for each of several workers, as JSON; empty where there is one.
    """

    result: ReloadResult
    at_s: float
    took_s: float
    why: str | None = None
    workers: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class ModelHistory:
    """As it stands.

    Attributes:
        serving: The model that serves.
        previous: The one before it; None where there was none.
        last_reload: None before the first. Refused ones do not count.
    """

    serving: Tenure
    previous: Tenure | None = None
    last_reload: ReloadReport | None = None
