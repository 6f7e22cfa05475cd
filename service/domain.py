"""The words of the product as types: what a caller sends, what travels inside, what comes back.

Nothing here knows HTTP, text encoding, ONNX or time.
"""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import NamedTuple

MAX_ID_CHARS = 256
"""Of an ad's id."""

# Printable ASCII: the request id goes into a header and into logs.
REQUEST_ID_PATTERN = r"^[\x21-\x7e]{1,128}$"
REQUEST_ID_WORDS = "1 to 128 printable characters of ASCII, and no space among them"


def is_request_id(text: str) -> bool:
    """Whether a text may be echoed and logged as a request id."""
    return re.fullmatch(REQUEST_ID_PATTERN, text) is not None


@dataclass(frozen=True, slots=True)
class Ad:
    """One advertisement as shown, with the caller's opaque id.

    Either `text` is set, or `title` (and optionally `description`); `AdTemplate` says how they
    become the text that the model reads.
    """

    id: str
    title: str = ""
    description: str = ""
    text: str = ""


def fault_of_texts(title: str | None, description: str | None, text: str | None) -> str | None:
    """Why the texts make no ad; None where they do. Null, empty and only white space are alike."""
    has_title = bool((title or "").strip())
    if (text or "").strip():
        if has_title or (description or "").strip():
            return "give either text, or title and description, not both"
    elif not has_title:
        return "an ad needs a title or a text that is not empty"
    return None


class Priority(enum.IntEnum):
    """Scheduling class; the smaller number is served first, and refused last."""

    AUCTION = 0
    BATCH = 1


class PairStatus(enum.StrEnum):
    """What became of one pair. `OK` and `CACHED` have a score: computed now, or before."""

    OK = "ok"
    CACHED = "cached"
    DEADLINE = "deadline"
    FAILED = "failed"


class ReloadResult(enum.StrEnum):
    """How a reload of the bundle ended.

    `CHANGED`: another model serves. `UNCHANGED`: the folder holds the model that serves already.
    `FAILED`: what it holds cannot be served. `REFUSED`: another reload was under way.
    """

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"
    REFUSED = "refused"


class RestartReason(enum.StrEnum):
    """What ended a worker process in whose place another was started.

    `DIED`: it ended by itself or by a signal. `HUNG`: its event loop gave no sign. `RELOAD`: it
    could not load what the others serve.
    """

    DIED = "died"
    HUNG = "hung"
    RELOAD = "reload"


@dataclass(frozen=True, slots=True)
class ScoreQuery:
    """One request in the product's own terms, already validated.

    Attributes:
        request_id: Echoed in the answer.
        query: What the user typed.
        ads: One or more ads; the answer keeps their order.
        timeout_s: Seconds from acceptance until the answer must leave.
        priority: Scheduling class.
        min_score: Scores at or above it are marked eligible; None asks for no mark.
        queries: One for each ad, in place of `query`, where the ads answer different queries. All
            of it is still one request, with one admission and one deadline.
        all_or_nothing: An answer without some ad's score is of no use to the caller.
        probe: The texts were made up to look into the model: no cache keeps them, and neither the
            distribution of scores nor the count of texts that were cut takes them in.
    """

    request_id: str
    query: str
    ads: tuple[Ad, ...]
    timeout_s: float
    priority: Priority = Priority.AUCTION
    min_score: float | None = None
    queries: tuple[str, ...] = ()
    all_or_nothing: bool = False
    probe: bool = False


class AdScore(NamedTuple):
    """One ad's outcome. `score` is a calibrated probability in 0-1, or None.

    A tuple, since every ad of every request has one: it is made in a third of a dataclass's time.
    """

    ad_id: str
    score: float | None
    status: PairStatus
    truncated: bool
    eligible: bool | None = None


@dataclass(frozen=True, slots=True)
class StageTimes:
    """Where one request's time went, in seconds.

    `queue_s` ends when the request's first batch starts, `inference_s` when its last pair is
    settled; with the encoding and the work around them they add up to `total_s`.
    """

    encode_s: float
    queue_s: float
    inference_s: float
    total_s: float

    def in_ms(self) -> dict[str, float]:
        """Milliseconds of each stage and in total, as answers and logs tell them."""
        return {
            "encode": round(self.encode_s * 1000, 3),
            "queue": round(self.queue_s * 1000, 3),
            "inference": round(self.inference_s * 1000, 3),
            "total": round(self.total_s * 1000, 3),
        }


@dataclass(frozen=True, slots=True)
class ScoreAnswer:
    """The answer to a `ScoreQuery`: one `AdScore` per ad, in the order asked.

    `was_cut_off`: what has no score lacks it since the service stopped, not for want of time.
    """

    request_id: str
    scores: tuple[AdScore, ...]
    times: StageTimes
    was_cut_off: bool = False
