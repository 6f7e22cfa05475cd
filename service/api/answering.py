"""What every route that scores has in common: its time, its id, and its answer."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

from fastapi import Request

from service.api.openapi_parts import TIMEOUT_HEADER
from service.api.recording import record_of
from service.api.state import ReadyParts, RequestLimits, ServiceState
from service.domain import PairStatus, ScoreAnswer, ScoreQuery
from service.errors import ClientGone, DeadlineExceeded, InferenceFailed, InvalidRequest
from service.score_answer import PairDetails, Prepared
from service.scorer import PAIRS_A_STEP, Scorer

TIMEOUT_PATTERN = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")


@dataclass(frozen=True, slots=True)
class Answered:
    """An answer and the model that all of its scores are of.

    Attributes:
        answer: The answer.
        model: The facts of the model.
        prepared: The request, as its scorer knows it.
        scorer: The model's.
    """

    answer: ScoreAnswer
    model: dict[str, Any]
    prepared: Prepared
    scorer: Scorer[Any]

    def details(self) -> PairDetails:
        """What some protocols tell besides the scores."""
        return self.scorer.details(self.prepared)


async def answer_query(
    request: Request,
    state: ServiceState,
    query: ScoreQuery,
    started_s: float,
    parts: ReadyParts | None = None,
) -> Answered:
    """Score the query's ads, as many as there is time for, and count what became of them.

    Args:
        request: Watched: once its caller has gone, nothing more is computed for it.
        state: Ready; see `ServiceState.ready_parts`.
        query: What to score.
        started_s: Instant from which its timeout counts.
        parts: With which the request began, where it has asked its model something already.

    Raises:
        ServiceError: As `Scorer.complete` does, and ClientGone.
    """
    scorer, clock, model = parts or state.ready_parts()
    record = record_of(request)
    record.n_ads, record.priority = len(query.ads), query.priority
    record.timeout_s = query.timeout_s
    try:
        prepared = scorer.prepare(query, started_s)
        if prepared.missing:
            answer = await _unless_the_caller_leaves(request, scorer.complete(prepared))
        else:
            if len(query.ads) > PAIRS_A_STEP:
                await asyncio.sleep(0)  # nothing to wait for, but others have their turn
            answer = scorer.collect(prepared)
    except DeadlineExceeded:
        state.metrics.requests.pairs_lost(PairStatus.DEADLINE, len(query.ads))
        raise
    except InferenceFailed:
        state.metrics.requests.pairs_lost(PairStatus.FAILED, len(query.ads))
        raise
    slack_s = query.timeout_s - (clock.now_s() - started_s)
    record.scores, record.times, record.slack_s = answer.scores, answer.times, slack_s
    record.computed_tokens = prepared.computed_tokens
    state.metrics.requests.scored(answer.scores, answer.times, slack_s, probe=query.probe)
    if state.shadow is not None:
        state.shadow.offer(query, answer)
    return Answered(answer, model, prepared, scorer)


async def _unless_the_caller_leaves(
    request: Request, scoring: Coroutine[Any, Any, ScoreAnswer]
) -> ScoreAnswer:
    """The answer, unless the connection closes first: then its pairs leave the queue at once.

    The server does not cancel a route whose caller has gone, so somebody has to look.

    Raises:
        ClientGone: Nobody waits for the answer any more.
    """
    answer = asyncio.ensure_future(scoring)
    gone = asyncio.ensure_future(request.receive())  # after the body only a disconnect comes
    try:
        await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise ClientGone
        return answer.result()
    finally:
        answer.cancel()
        gone.cancel()


def timeout_s(
    request: Request,
    limits: RequestLimits,
    timeout_ms: float | None = None,
    field: str = "timeout_ms",
    *,
    may_cut: bool = False,
) -> float:
    """The body's timeout, else the header's, else the default.

    Args:
        request: The request.
        limits: Default and ceiling.
        timeout_ms: What the body says; None where it says nothing.
        field: Where it says so.
        may_cut: Take the ceiling for a timeout over it, as for clients that were made for servers
            without one.

    Raises:
        InvalidRequest: A timeout that is no number, or over the ceiling and may not be cut.
    """
    limit_ms = limits.max_timeout_s * 1000
    if timeout_ms is None and TIMEOUT_HEADER in request.headers:
        field, text = TIMEOUT_HEADER, request.headers[TIMEOUT_HEADER].strip()
        timeout_ms = float(text) if TIMEOUT_PATTERN.fullmatch(text) else 0.0
        if timeout_ms <= 0:
            raise invalid(
                field,
                "must be milliseconds as a plain number over 0, such as 250 or 12.5, up to "
                f"{limit_ms:g}; got {text[:50]!r}",
            )
    if timeout_ms is None:
        return limits.default_timeout_s
    if timeout_ms > limit_ms and not may_cut:
        raise invalid(field, f"got {timeout_ms:.12g}, the limit is {limit_ms:g}")
    return min(timeout_ms, limit_ms) / 1000


def invalid(field: str, problem: str) -> InvalidRequest:
    """The error for one faulty field."""
    return InvalidRequest(f"{field}: {problem}", [{"field": field, "problem": problem}])


def model_out(facts: dict[str, Any]) -> dict[str, str]:
    """`ModelOut` of the model's facts."""
    return {"name": facts["model"]["name"], "version": facts["model"]["version"]}
