"""What can become of a request, and what an answer must be to count as one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Scores = Mapping[tuple[str, str], float]
"""The score of each query and ad text."""


class Outcome(StrEnum):
    """Where a request ended; each that was sent has one."""

    OK = "ok"
    PARTIAL = "partial"
    DEADLINE = "deadline"
    SHED = "shed"
    NOT_READY = "not ready"
    FAILED = "failed"
    FAULT = "5xx"
    REFUSED = "refused"
    RESET = "reset"
    SILENCE = "silence"
    WRONG = "wrong"


HONEST = frozenset({Outcome.OK, Outcome.PARTIAL, Outcome.DEADLINE, Outcome.SHED})
"""What a service may always say: how much it can do in time is not promised."""

OF_STATUS = {
    429: Outcome.SHED,
    503: Outcome.NOT_READY,
    504: Outcome.DEADLINE,
}


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked.

    Attributes:
        id: Known to nobody else.
        query: As sent.
        texts: Of the ads, in order.
    """

    id: str
    query: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ended:
    """A request that was sent, and its end.

    Attributes:
        sent_s: When; monotonic seconds, like all others here.
        ended_s: When its answer was complete, or its failure known.
        outcome: Where it ended.
        version: Of the model, where the answer names one.
        why: Of outcomes that nobody wants.
    """

    sent_s: float
    ended_s: float
    outcome: Outcome
    version: str | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Judgement:
    """An answer's outcome, the model that it names, and what is wrong with it."""

    outcome: Outcome
    version: str | None = None
    why: str = ""


def judge(request: Request, status: int, body: bytes, models: Mapping[str, Scores]) -> Judgement:
    """What a complete answer is worth.

    Args:
        request: What was asked.
        status: Of the answer.
        body: Likewise.
        models: The right scores by the version of each model that may serve.
    """
    try:
        answer = json.loads(body)
    except ValueError:
        return Judgement(Outcome.WRONG, why=f"{status} with no JSON")
    if status != 200:
        code = answer.get("error", {}).get("code")
        if code == "inference_failed":
            return Judgement(Outcome.FAILED)
        outcome = OF_STATUS.get(status, Outcome.FAULT if status >= 500 else Outcome.WRONG)
        return Judgement(outcome, why=f"{status} {code}")
    return _judge_scores(request, answer, models)


def _judge_scores(
    request: Request, answer: Mapping[str, Any], models: Mapping[str, Scores]
) -> Judgement:
    version = answer["model"]["version"]
    if answer["request_id"] != request.id:
        return Judgement(Outcome.WRONG, version, f"the answer of {answer['request_id']}")
    if version not in models:
        return Judgement(Outcome.WRONG, version, f"of the unknown model {version}")
    given = answer["scores"]
    if [ad["id"] for ad in given] != [str(place) for place in range(len(request.texts))]:
        return Judgement(Outcome.WRONG, version, "its ads are not those that were asked for")
    for text, ad in zip(request.texts, given, strict=True):
        right = models[version][request.query, text]
        if ad["score"] is not None and ad["score"] != right:
            return Judgement(Outcome.WRONG, version, f"score {ad['score']}, not {right}")
    statuses = {ad["status"] for ad in given}
    if "failed" in statuses:
        return Judgement(Outcome.FAILED, version)
    whole = statuses <= {"ok", "cached"}
    return Judgement(Outcome.OK if whole else Outcome.PARTIAL, version)
