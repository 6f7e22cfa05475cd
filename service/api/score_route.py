"""`POST /v1/score`: the native API."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import answer_query, model_out, timeout_s
from service.api.body import parse_score_request, read_body
from service.api.compatible import vllm
from service.api.compatible.dialects import OPENAI
from service.api.compatible.vllm_bodies import SCORE_BODIES, VllmScoreResponse
from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.openapi_parts import ANSWER_HEADERS, PARAMETERS, answered, either, request_body
from service.api.recording import begin, end
from service.api.request_ids import take_id_of_faulty_body
from service.api.schemas import REQUEST_ID_HEADER, ScoreRequest, ScoreResponse
from service.api.server_timing import SERVER_TIMING_HEADER, server_timing, with_server_timing
from service.api.state import state_of
from service.domain import AdScore, ScoreAnswer
from service.errors import InvalidRequest, NotReady, ServiceError, TooManyAds

SCORE_ROUTE = "/v1/score"
SCORE_CALL = (SCORE_ROUTE, "POST")

router = APIRouter(tags=["scoring"])


@router.post(
    SCORE_ROUTE,
    summary="Score ads for a query",
    response_model=ScoreResponse | VllmScoreResponse,
    responses={
        **answered(
            "A score or a reason for each ad. X-Truncated-Texts is told to bodies in vLLM's terms.",
            ANSWER_HEADERS,
        ),
        **either(documented_errors(), OPENAI.documented_errors()),
    },
    openapi_extra={
        # The route reads the body itself, to bound it; so it also says what the body is.
        "requestBody": request_body(ScoreRequest, *SCORE_BODIES),
        "parameters": PARAMETERS,
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
    record = begin(request, SCORE_ROUTE)
    outcome = ServiceError.code
    try:
        state.ready_parts()
        content = await read_body(request, state.limits)
        try:
            body = parse_score_request(content, state.limits.max_ads)
        except (InvalidRequest, TooManyAds) as error:
            fields = vllm.score_fields(content) if isinstance(error, InvalidRequest) else None
            if fields is None:
                take_id_of_faulty_body(request, content)
                raise
            outcome, response = await vllm.answer_score_body(request, fields, record.started_s)
            return with_server_timing(response, record)
        if body.request_id is not None:
            record.request_id = body.request_id
        allowed_s = timeout_s(request, state.limits, body.timeout_ms)
        query = body.to_domain(record.request_id, allowed_s)
        answered = await answer_query(request, state, query, record.started_s)
        complete = all(ad.score is not None for ad in answered.answer.scores)
        outcome = "ok" if complete else "partial"
        return _response(answered.answer, answered.model)
    except ServiceError as error:
        outcome = error.code
        raise
    except asyncio.CancelledError:
        outcome = NotReady.code  # the server gives up on what its drain could not finish
        raise
    finally:
        end(state, record, outcome)


def _response(answer: ScoreAnswer, model: dict[str, Any]) -> Response:
    content = {
        "request_id": answer.request_id,
        "model": model_out(model),
        "scores": [_ad_out(ad) for ad in answer.scores],
        "timing_ms": answer.times.in_ms(),
    }
    headers = {
        REQUEST_ID_HEADER: answer.request_id,
        SERVER_TIMING_HEADER: server_timing(answer.times),
    }
    return json_response(content, headers=headers)


def _ad_out(ad: AdScore) -> dict[str, Any]:
    out: dict[str, Any] = {"id": ad.ad_id, "score": ad.score, "status": ad.status}
    if ad.eligible is not None:
        out["eligible"] = ad.eligible
    if ad.truncated:
        out["truncated"] = True
    return out
