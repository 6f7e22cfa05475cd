"""`POST /v1/score`: the native API."""

from __future__ import annotations

import asyncio
import itertools
import re
import secrets
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
SCORE_CALL = (SCORE_ROUTE, "POST")
TIMEOUT_HEADER = "X-Request-Timeout-Ms"
TIMEOUT_PATTERN = re.compile(r"\d{1,9}(\.\d{1,6})?")

# A request id is unique without asking the kernel for random bytes each time.
PROCESS_ID = secrets.token_hex(8)
REQUESTS = itertools.count()

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
        },
        "parameters": [
            {
                "name": TIMEOUT_HEADER,
                "in": "header",
                "required": False,
                "schema": {"type": "number", "exclusiveMinimum": 0},
                "description": "As `timeout_ms`, which wins where both are given.",
            }
        ],
    },
)
async def score(request: Request) -> Response:
    """Score each ad's relevance to the query: a calibrated probability in 0-1.

    The answer keeps the order of the ads and gives each one a status: `ok` (computed now), `cached`
    (computed before), `deadline` (not scored in time) or `failed`. If no ad has a score in time the
    answer is 504; a request that cannot be served in time is refused with 429.
    """
    state = state_of(request)
    started_s = _now_s(state)
    outcome = ServiceError.code
    try:
        answer, response = await _answer(request, state, started_s)
        complete = all(ad.score is not None for ad in answer.scores)
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


async def _answer(
    request: Request, state: ServiceState, started_s: float
) -> tuple[ScoreAnswer, Response]:
    scorer, clock, model = state.ready_parts()
    body = parse_score_request(await read_body(request, state.limits.max_body_bytes))
    timeout_s = _timeout_s(request, body, state.limits)
    query = body.to_domain(_request_id(request, body), timeout_s)
    try:
        prepared = scorer.prepare(query, started_s)
        if prepared.missing:
            answer = await _unless_the_caller_leaves(request, scorer.complete(prepared))
        else:
            answer = scorer.collect(prepared)
    except DeadlineExceeded:
        state.metrics.pairs_lost(PairStatus.DEADLINE, len(query.ads))
        raise
    except InferenceFailed:
        state.metrics.pairs_lost(PairStatus.FAILED, len(query.ads))
        raise
    slack_s = timeout_s - (clock.now_s() - started_s)
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


def _timeout_s(request: Request, body: ScoreRequest, limits: RequestLimits) -> float:
    """The body's timeout, else the header's, else the default.

    Raises:
        TooManyAds: More than one request may carry.
        InvalidRequest: A timeout that is no number or over the ceiling.
    """
    if len(body.ads) > limits.max_ads:
        raise TooManyAds(len(body.ads), limits.max_ads)
    field, timeout_ms = "timeout_ms", body.timeout_ms
    if timeout_ms is None and TIMEOUT_HEADER in request.headers:
        field, text = TIMEOUT_HEADER, request.headers[TIMEOUT_HEADER].strip()
        timeout_ms = float(text) if TIMEOUT_PATTERN.fullmatch(text) else 0.0
        if timeout_ms <= 0:
            raise _invalid(field, f"must be a number of milliseconds over 0, got {text[:50]!r}")
    if timeout_ms is None:
        return limits.default_timeout_s
    limit_ms = limits.max_timeout_s * 1000
    if timeout_ms > limit_ms:
        raise _invalid(field, f"got {timeout_ms:.12g}, the limit is {limit_ms:g}")
    return timeout_ms / 1000


def _invalid(field: str, problem: str) -> InvalidRequest:
    return InvalidRequest(f"{field}: {problem}", [{"field": field, "problem": problem}])


def _request_id(request: Request, body: ScoreRequest) -> str:
    """From the body, else the header if it is a proper id, else a new one."""
    from_header = request.headers.get(REQUEST_ID_HEADER, "")
    if body.request_id is not None:
        return body.request_id
    return from_header if is_request_id(from_header) else f"{PROCESS_ID}-{next(REQUESTS):x}"


def _ad_out(ad: AdScore) -> dict[str, Any]:
    out: dict[str, Any] = {"id": ad.ad_id, "score": ad.score, "status": ad.status}
    if ad.eligible is not None:
        out["eligible"] = ad.eligible
    if ad.truncated:
        out["truncated"] = True
    return out


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 3)
