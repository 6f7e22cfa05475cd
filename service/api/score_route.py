"""`POST /v1/score`: the native API."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.body import parse_score_request, read_body
from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.schemas import (
    REQUEST_ID_HEADER,
    ScoreRequest,
    ScoreResponse,
    is_request_id,
)
from service.api.state import RequestLimits, ServiceState, state_of
from service.domain import AdScore, PairStatus, ScoreAnswer
from service.errors import (
    ClientGone,
    DeadlineExceeded,
    InferenceFailed,
    InvalidRequest,
    NotReady,
    ServiceError,
    TooManyAds,
)

SCORE_ROUTE = "/v1/score"

router = APIRouter(tags=["scoring"])


@router.post(
    SCORE_ROUTE,
    response_model=ScoreResponse,
    responses=documented_errors(),
    openapi_extra={
        # The route reads the body itself, to bound it; so it also says what the body is.
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"$ref": "#/components/schemas/ScoreRequest"}}
            },
        }
    },
)
async def score(request: Request) -> Response:
    """Score each ad's relevance to the query: a calibrated probability in 0-1.

    The answer keeps the order of the ads and gives each one a status: `ok`, `deadline` (not
    scored in time) or `failed`. If no ad has a score in time the answer is 504.
    """
    state = state_of(request)
    started_s = _now_s(state)
    outcome = ServiceError.code
    try:
        answer, response = await _answer(request, state)
        complete = all(ad.status is PairStatus.OK for ad in answer.scores)
        outcome = "ok" if complete else "partial"
        return response
    except ServiceError as error:
        outcome = error.code
        raise
    except asyncio.CancelledError:
        outcome = NotReady.code  # the server gives up on what its drain could not finish
        raise
    finally:
        state.metrics.request_done(SCORE_ROUTE, outcome, _now_s(state) - started_s)


async def _answer(request: Request, state: ServiceState) -> tuple[ScoreAnswer, Response]:
    scorer, clock, model = state.ready_parts()
    body = parse_score_request(await read_body(request, state.limits.max_body_bytes))
    _check_limits(body, state.limits)
    timeout_s = (
        state.limits.default_timeout_s if body.timeout_ms is None else body.timeout_ms / 1000
    )
    query = body.to_domain(_request_id(request, body), timeout_s)
    accepted_s = clock.now_s()
    try:
        answer = await _unless_the_caller_leaves(request, scorer.score(query))
    except DeadlineExceeded:
        state.metrics.pairs_lost(PairStatus.DEADLINE, len(query.ads))
        raise
    except InferenceFailed:
        state.metrics.pairs_lost(PairStatus.FAILED, len(query.ads))
        raise
    slack_s = timeout_s - (clock.now_s() - accepted_s)
    state.metrics.request_scored(answer.scores, answer.times, slack_s)
    content = {
        "request_id": answer.request_id,
        "model": {"name": model["model"]["name"], "version": model["model"]["version"]},
        "scores": [_ad_out(ad) for ad in answer.scores],
        "timing_ms": {
            "encode": _ms(answer.times.encode_s),
            "queue": _ms(answer.times.queue_s),
            "inference": _ms(answer.times.inference_s),
            "total": _ms(answer.times.total_s),
        },
    }
    return answer, json_response(content, headers={REQUEST_ID_HEADER: answer.request_id})


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


def _now_s(state: ServiceState) -> float:
    return state.clock.now_s() if state.clock is not None else 0.0


def _check_limits(body: ScoreRequest, limits: RequestLimits) -> None:
    if len(body.ads) > limits.max_ads:
        raise TooManyAds(len(body.ads), limits.max_ads)
    limit_ms = limits.max_timeout_s * 1000
    if body.timeout_ms is not None and body.timeout_ms > limit_ms:
        problem = f"got {body.timeout_ms:g}, the limit is {limit_ms:g}"
        raise InvalidRequest(
            f"timeout_ms: {problem}", [{"field": "timeout_ms", "problem": problem}]
        )


def _request_id(request: Request, body: ScoreRequest) -> str:
    """From the body, else the header if it is a proper id, else a new one."""
    from_header = request.headers.get(REQUEST_ID_HEADER, "")
    if body.request_id is not None:
        return body.request_id
    return from_header if is_request_id(from_header) else uuid.uuid4().hex


def _ad_out(ad: AdScore) -> dict[str, Any]:
    out: dict[str, Any] = {"id": ad.ad_id, "score": ad.score, "status": ad.status}
    if ad.eligible is not None:
        out["eligible"] = ad.eligible
    if ad.truncated:
        out["truncated"] = True
    return out


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
