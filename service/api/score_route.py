"""`POST /v1/score`: the native API."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import (
    TIMEOUT_PARAMETER,
    answer_query,
    model_out,
    now_s,
    request_id,
    timeout_s,
    timing_out,
)
from service.api.body import parse_body, read_body
from service.api.compatible import vllm
from service.api.compatible.dialects import OpenAiError
from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.schemas import REQUEST_ID_HEADER, ErrorResponse, ScoreRequest, ScoreResponse
from service.api.state import state_of
from service.domain import AdScore, ScoreAnswer
from service.errors import InvalidRequest, NotReady, ServiceError, TooManyAds

SCORE_ROUTE = "/v1/score"
SCORE_CALL = (SCORE_ROUTE, "POST")

router = APIRouter(tags=["scoring"])


@router.post(
    SCORE_ROUTE,
    response_model=ScoreResponse | vllm.VllmScoreResponse,
    responses={
        status: {**entry, "model": ErrorResponse | OpenAiError}
        for status, entry in documented_errors().items()
    },
    openapi_extra={
        # The route reads the body itself, to bound it; so it also says what the body is.
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "anyOf": [
                            {"$ref": "#/components/schemas/ScoreRequest"},
                            *vllm.SCORE_BODY_SCHEMAS,
                        ]
                    }
                }
            },
        },
        "parameters": [TIMEOUT_PARAMETER],
    },
)
async def score(request: Request) -> Response:
    """Score each ad's relevance to the query: a calibrated probability in 0-1.

    The answer keeps the order of the ads and gives each one a status: `ok` (computed now), `cached`
    (computed before), `deadline` (not scored in time) or `failed`. If no ad has a score in time the
    answer is 504; a request that cannot be served in time is refused with 429.

    A body in vLLM's terms (`text_1` and `text_2`, or one of their other names) is answered in
    vLLM's terms, errors included; see `POST /score`.
    """
    state = state_of(request)
    started_s = now_s(state)
    outcome = ServiceError.code
    try:
        _, _, model = state.ready_parts()
        content = await read_body(request, state.limits.max_body_bytes)
        try:
            body = parse_body(ScoreRequest, content)
        except InvalidRequest:
            if not vllm.is_score_body(content):
                raise
            outcome, response = await vllm.answer_score_body(request, content, started_s)
            return response
        if len(body.ads) > state.limits.max_ads:
            raise TooManyAds(len(body.ads), state.limits.max_ads)
        allowed_s = timeout_s(request, state.limits, body.timeout_ms)
        query = body.to_domain(request_id(request, body.request_id), allowed_s)
        _, answer = await answer_query(request, state, query, started_s)
        complete = all(ad.score is not None for ad in answer.scores)
        outcome = "ok" if complete else "partial"
        return _response(answer, model)
    except ServiceError as error:
        outcome = error.code
        raise
    except asyncio.CancelledError:
        outcome = NotReady.code  # the server gives up on what its drain could not finish
        raise
    finally:
        state.metrics.request_done(SCORE_ROUTE, outcome, now_s(state) - started_s)


def _response(answer: ScoreAnswer, model: dict[str, Any]) -> Response:
    content = {
        "request_id": answer.request_id,
        "model": model_out(model),
        "scores": [_ad_out(ad) for ad in answer.scores],
        "timing_ms": timing_out(answer.times),
    }
    return json_response(content, headers={REQUEST_ID_HEADER: answer.request_id})


def _ad_out(ad: AdScore) -> dict[str, Any]:
    out: dict[str, Any] = {"id": ad.ad_id, "score": ad.score, "status": ad.status}
    if ad.eligible is not None:
        out["eligible"] = ad.eligible
    if ad.truncated:
        out["truncated"] = True
    return out
