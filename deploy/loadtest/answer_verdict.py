"""What an answer is worth to an ad server: how many of its pairs it could use, and why not more.

A 200 is not yet a success: a pair with no score, or one that came after the auction closed, is
as good as none. Nothing here knows locust.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

PairFate = Literal["good", "deadline", "late", "refused", "failed"]
"""good: a score in time; deadline: the service gave up on it in time; late: a score after the
caller had stopped waiting; refused: not taken on (429, 503); failed: a fault, whosever it is."""

OK = 200
REFUSALS = (429, 503)
GATEWAY_TIMEOUT = 504

SCORED = ("ok", "cached")
UNSCORED = ("deadline", "failed")


@dataclass(frozen=True, slots=True)
class Verdict:
    """One answer, judged.

    Attributes:
        pairs: How many pairs met which fate; they add up to the pairs asked for.
        failure: What to file the request under, in few distinct texts; None for a full success.
        cached_pairs: How many scores came out of the service's cache, in time or not.
    """

    pairs: Counter[PairFate]
    failure: str | None
    cached_pairs: int = 0


def judge(
    status: int, body: bytes, elapsed_ms: float, patience_ms: float, ad_ids: Sequence[str]
) -> Verdict:
    """Judge one answer.

    Args:
        status: HTTP status; 0 where no answer came at all.
        body: As received.
        elapsed_ms: By the caller's clock, network included.
        patience_ms: How long the caller waits for an answer.
        ad_ids: Of the ads asked for, in their order.
    """
    if status != OK:
        return _error(status, _error_code(body), len(ad_ids))
    ads = _ads(body)
    if [ad["id"] for ad in ads] != list(ad_ids) or not all(_is_well_formed(ad) for ad in ads):
        return Verdict(Counter({"failed": len(ad_ids)}), "malformed answer")
    of_status = Counter(ad["status"] for ad in ads)
    n_scored = sum(of_status[status] for status in SCORED)
    late = elapsed_ms > patience_ms
    fates: Counter[PairFate] = Counter(
        {
            "late" if late else "good": n_scored,
            "deadline": of_status["deadline"],
            "failed": of_status["failed"],
        }
    )
    failure = None
    if late:
        failure = "late: came after the caller had stopped waiting"
    elif n_scored < len(ad_ids):
        failure = "partial: some ads have no score"
    return Verdict(fates, failure, of_status["cached"])


def _error(status: int, code: str | None, n_ads: int) -> Verdict:
    """A body that is not the service's own is a fault, whatever its status says."""
    fate: PairFate = "failed"
    if code is not None and status in REFUSALS:
        fate = "refused"
    elif code is not None and status == GATEWAY_TIMEOUT:
        fate = "deadline"
    return Verdict(Counter({fate: n_ads}), f"{status} {code or 'no answer of the service'}")


def _ads(body: bytes) -> list[dict[str, Any]]:
    """The ads of an answer; empty where the body is none."""
    try:
        return [{"id": ad["id"], **ad} for ad in json.loads(body)["scores"]]
    except (ValueError, TypeError, KeyError):
        return []


def _is_well_formed(ad: dict[str, Any]) -> bool:
    status, score = ad.get("status"), ad.get("score")
    if status in SCORED:
        return isinstance(score, int | float) and 0 <= score <= 1
    return status in UNSCORED and score is None


def _error_code(body: bytes) -> str | None:
    try:
        return str(json.loads(body)["error"]["code"])
    except (ValueError, TypeError, KeyError):
        return None
