"""`POST /v1/explain`: what the model reads of one pair, and which words carry its score."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import (
    answer_query,
    model_out,
    timeout_s,
)
from service.api.body import parse_body, read_body
from service.api.error_handlers import documented_errors
from service.api.explain_schemas import NOT_EXPLAINED, ExplainRequest, ExplainResponse
from service.api.json_response import json_response
from service.api.openapi_parts import PARAMETERS, answered, request_body
from service.api.recording import begin, end
from service.api.request_ids import request_id, take_id, take_id_of_faulty_body
from service.api.schemas import REQUEST_ID_HEADER
from service.api.server_timing import with_server_timing
from service.api.state import ServiceState, state_of
from service.domain import PairStatus
from service.errors import (
    CUT_OFF,
    DeadlineExceeded,
    InferenceFailed,
    InvalidRequest,
    NotReady,
    ServiceError,
)
from service.occlusion import WordEffect, occlude
from service.pair_seen import SideSeen, Token

EXPLAIN_ROUTE = "/v1/explain"

router = APIRouter(tags=["scoring"])


@router.post(
    EXPLAIN_ROUTE,
    summary="Explain a score",
    response_model=ExplainResponse,
    responses={**answered("Tokens, words and their drops."), **documented_errors()},
    openapi_extra={"requestBody": request_body(ExplainRequest), "parameters": PARAMETERS},
)
async def explain(request: Request) -> Response:
    """Show what the model reads of a pair, and how its score changes without each word.

    Each word that the model reads is left out in turn, the first 64 of the query and of the ad,
    and the pair is scored again, as bulk work. Words that were not scored before the deadline have
    null in place of numbers. The drops tell on what the score depends, not why; words work
    together, so they do not add up.
    """
    state = state_of(request)
    record = begin(request, EXPLAIN_ROUTE)
    outcome = ServiceError.code
    try:
        content, complete = await _explained(request, state, record.started_s)
        outcome = "ok" if complete else "partial"
        response = json_response(content, headers={REQUEST_ID_HEADER: content["request_id"]})
        return with_server_timing(response, record)
    except ServiceError as error:
        outcome = error.code
        raise
    except asyncio.CancelledError:
        outcome = NotReady.code  # the server gives up on what its drain could not finish
        raise
    finally:
        end(state, record, outcome)


async def _explained(
    request: Request, state: ServiceState, started_s: float
) -> tuple[dict[str, Any], bool]:
    """The answer, and whether every word that was to be left out has its numbers."""
    state.ready_parts()  # or not, before anything is read
    content = await read_body(request, state.limits)
    try:
        body = parse_body(ExplainRequest, content)
    except InvalidRequest:
        take_id_of_faulty_body(request, content)
        raise
    take_id(request, body.request_id)
    allowed_s = timeout_s(request, state.limits, body.timeout_ms)
    ad = body.ad.to_domain()
    parts = state.ready_parts()  # one model for the tokens and the scores
    seen = await parts[0].see(body.query, ad)
    occlusion = occlude(seen, state.limits.max_ads)
    query = occlusion.score_query(ad, request_id(request), allowed_s)
    given = await answer_query(request, state, query, started_s, parts)
    answer = given.answer
    whole = answer.scores[0]
    if whole.status is PairStatus.FAILED:
        raise InferenceFailed
    if whole.score is None and answer.was_cut_off:
        raise NotReady(CUT_OFF)
    if whole.score is None:
        raise DeadlineExceeded(allowed_s, 1)
    margins = given.details().margins
    of_query, of_ad = occlusion.effects(answer.scores, margins)
    out = {
        "request_id": answer.request_id,
        "id": ad.id,
        "model": model_out(given.model),
        "score": whole.score,
        "logit": float(margins[0]),
        "query": _side_out(seen.query, of_query),
        "ad": _side_out(seen.ad, of_ad),
        "tokens": [_token_out(position, token) for position, token in enumerate(seen.tokens)],
        "timing_ms": answer.times.in_ms(),
    }
    return out, all(less.score is not None for less in answer.scores)


def _side_out(side: SideSeen, effects: Sequence[WordEffect]) -> dict[str, Any]:
    words = [
        {
            "text": effect.word.text,
            "start": effect.word.start,
            "end": effect.word.end,
            "status": effect.status or NOT_EXPLAINED,
            "score_drop": effect.score_drop,
            "logit_drop": effect.logit_drop,
        }
        for effect in effects
    ]
    return {"text": side.text, "cut_text": side.cut_text, "words": words}


def _token_out(position: int, token: Token) -> dict[str, Any]:
    return {
        "position": position,
        "token": token.text,
        "id": token.id,
        "segment": token.segment,
        "side": token.side,
        "start": token.start,
        "end": token.end,
    }
