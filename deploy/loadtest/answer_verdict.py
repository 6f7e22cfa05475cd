"""What an answer is worth to an ad server: how many of its pairs it could use, and why not more.

A 200 is not yet a success: a pair with no score, or one that came after the auction closed, is
as good as none. Nothing here knows locust.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import Literal

PairFate = Literal["good", "deadline", "late", "failed", "refused"]
"""good: a score in time; deadline: the service gave up on it in time; late: a score after the
caller had stopped waiting; failed: an error; refused: not taken on (429, 503)."""

OK = 200
REFUSALS = (429, 503)
GATEWAY_TIMEOUT = 504


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer, judged.

    Attributes:
        pairs: How many pairs met which fate; they add up to the pairs asked for.
        failure: What to file the request under, in few distinct texts; None for a full success.
    """

    pairs: Counter[PairFate]
    failure: str | None


def judge(status: int, body: bytes, elapsed_ms: float, patience_ms: float, n_ads: int) -> Verdict:
    """Judge one answer.

    Args:
        status: HTTP status; 0 where no answer came at all.
        body: As received.
        elapsed_ms: By the caller's clock, network included.
        patience_ms: How long the caller waits for an answer.
        n_ads: Pairs asked for.
    """
    if status != OK:
        fate: PairFate = "deadline" if status == GATEWAY_TIMEOUT else "failed"
        fate = "refused" if status in REFUSALS else fate
        return Verdict(Counter({fate: n_ads}), f"{status} {_error_code(body)}")
    statuses = _pair_statuses(body)
    if len(statuses) != n_ads:
        return Verdict(Counter({"failed": n_ads}), "malformed answer")
    of_status = Counter(statuses)
    fates: Counter[PairFate] = Counter(
        {"deadline": of_status["deadline"], "failed": of_status["failed"]}
    )
    late = elapsed_ms > patience_ms
    fates["late" if late else "good"] = of_status["ok"]
    if late:
        return Verdict(fates, "late: came after the caller had stopped waiting")
    complete = of_status["ok"] == n_ads
    return Verdict(fates, None if complete else "partial: some ads have no score")


def _pair_statuses(body: bytes) -> list[str]:
    """The status of each ad; empty where the body is not an answer."""
    try:
        return [ad["status"] for ad in json.loads(body)["scores"]]
    except (ValueError, TypeError, KeyError):
        return []


def _error_code(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, TypeError, KeyError):
        return "no answer of the service"
