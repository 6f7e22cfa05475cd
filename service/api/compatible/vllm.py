"""vLLM's scores: `POST /score`, and bodies of that kind that come to `POST /v1/score`.

Shapes as of vLLM 0.13: docs.vllm.ai/en/stable/models/pooling_models
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import invalid
from service.api.compatible.calls import (
    Call,
    check_given_once,
    counted,
    parse_fields,
    read_fields,
    spoken,
    validated,
)
from service.api.compatible.dialects import OPENAI
from service.api.compatible.documents import priority_class, usage
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.compatible.vllm_bodies import SCORE_BODIES, SPELLINGS, VllmScoreResponse
from service.api.compatible.vllm_options import check_room
from service.api.json_response import json_response
from service.api.openapi_parts import ANSWER_HEADERS, COMPATIBLE_PARAMETERS, answered, request_body
from service.api.request_ids import take_id
from service.api.state import state_of
from service.errors import InvalidRequest

SCORE_ROUTE = "/score"

router = APIRouter(tags=["vllm"])

LEFT_NAMES = tuple(dict.fromkeys(left for _, left, _ in SPELLINGS))
RIGHT_NAMES = tuple(dict.fromkeys(right for _, _, right in SPELLINGS))
SIDE_NAMES = (*LEFT_NAMES, *RIGHT_NAMES)
OWN_NAMES = ("query", "ads")


@router.post(
    SCORE_ROUTE,
    summary="Score pairs",
    response_model=VllmScoreResponse,
    responses={
        **answered("A score for each pair, in their order.", ANSWER_HEADERS),
        **OPENAI.documented_errors(),
    },
    openapi_extra={
        "requestBody": request_body(*SCORE_BODIES),
        "parameters": COMPATIBLE_PARAMETERS,
    },
)
async def score(request: Request) -> Response:
    """Score pairs, in their order: one query for all texts, or one for each.

    The sides are `text_1` and `text_2`, `data_1` and `data_2`, or `queries` and `documents` or
    `items`. `use_activation: false` asks for logits.
    """

    async def answer(call: Call) -> Response:
        return await _answer(call, await read_fields(call))

    return await counted(request, SCORE_ROUTE, OPENAI, answer)


def score_fields(content: bytes) -> dict[str, Any] | None:
    """The fields of a body that is one of vLLM's; None for all others, cheaply for most."""
    if not any(name.encode() in content for name in SIDE_NAMES):
        return None
    try:
        fields = parse_fields(content)
    except InvalidRequest:
        return None
    if any(name in fields for name in OWN_NAMES):
        return None
    return fields if any(name in fields for name in SIDE_NAMES) else None


async def answer_score_body(
    request: Request, fields: dict[str, Any], started_s: float
) -> tuple[str, Response]:
    """Answer the fields that `score_fields` gave, in vLLM's terms.

    Returns:
        outcome: For the metrics.
        response: Also for an error.
    """

    async def answer(call: Call) -> Response:
        return await _answer(call, fields)

    take_id(request, fields.get("request_id"))
    return await spoken(Call(request, state_of(request), started_s, OPENAI), answer)


async def _answer(call: Call, fields: dict[str, Any]) -> Response:
    for names in (LEFT_NAMES, RIGHT_NAMES):
        check_given_once(fields, names)
    given = {name for name in SIDE_NAMES if fields.get(name) is not None}
    fitting = (one for one in SPELLINGS if given >= {one[1], one[2]})
    similar = (one for one in SPELLINGS if not given.isdisjoint((one[1], one[2])))
    kind, left_name, right_name = next(fitting, None) or next(similar, SPELLINGS[0])
    body = validated(kind, fields)
    left: list[str] = getattr(body, left_name)
    right: list[str] = getattr(body, right_name)
    if len(left) not in (1, len(right)) and right:
        problem = f"must be one or as many as {right_name}: got {len(left)} and {len(right)}"
        raise invalid(left_name, problem)
    check_room(call, body)
    asked = Asked(
        left,
        right,
        texts_field=right_name,
        query_place=left_name if len(left) == 1 else f"{left_name}[{{}}]",
        text_place=f"{right_name}[{{}}]",
        priority=priority_class(body.priority),
    )
    scored = await score_pairs(call, asked)
    values = scored.margins if body.wants_logits else scored.scores
    content = {
        "id": scored.request_id,
        "object": "list",
        "created": int(time.time()),
        "model": scored.model["model"]["name"],
        "data": [
            {"index": index, "object": "score", "score": value}
            for index, value in enumerate(values)
        ],
        "usage": {**usage(scored.computed_tokens), "completion_tokens": 0},
    }
    return json_response(content, headers=scored.headers)
