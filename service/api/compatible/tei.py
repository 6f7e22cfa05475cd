"""text-embeddings-inference: POST /predict, GET /info, GET /health, and its half of POST /rerank.

Shapes as of its version 1.8: https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import invalid
from service.api.compatible.calls import (
    Call,
    counted,
    read_fields,
    validated,
)
from service.api.compatible.dialects import TEI
from service.api.compatible.documents import ranking
from service.api.compatible.pair_scoring import Asked, Scored, score_pairs
from service.api.compatible.release import release
from service.api.compatible.tei_bodies import (
    LABEL,
    NO_SUCH_LIMIT,
    TeiHealth,
    TeiInfo,
    TeiPrediction,
    TeiPredictRequest,
    TeiRerankRequest,
)
from service.api.json_response import json_response
from service.api.openapi_parts import (
    ANSWER_HEADERS,
    COMPATIBLE_PARAMETERS,
    answered,
    request_body,
)
from service.api.state import state_of
from service.errors import NotReady, ServiceError, TooManyAds, Unauthorized

PREDICT_ROUTE = "/predict"
INFO_ROUTE = "/info"
HEALTH_ROUTE = "/health"

router = APIRouter(tags=["text-embeddings-inference"])

# By text-embeddings-inference's own names.
_TIMES = {
    "x-total-time": "From the headers to the answer",
    "x-compute-time": "The same",
    "x-tokenization-time": "Until the pairs were in tokens",
    "x-queue-time": "Until the first batch with one of them started",
    "x-inference-time": "Until the last pair was settled",
}
TIMING_HEADERS = {
    **ANSWER_HEADERS,
    "x-compute-type": {
        "description": "Execution provider.",
        "schema": {"type": "string"},
        "example": "cpu+optimized",
    },
    "x-compute-characters": {
        "description": "Characters of all pairs.",
        "schema": {"type": "integer", "minimum": 0},
    },
    "x-compute-tokens": {
        "description": "Tokens of the pairs that were computed; pairs from the cache count none.",
        "schema": {"type": "integer", "minimum": 0},
    },
    **{
        name: {
            "description": f"{what}, in whole milliseconds.",
            "schema": {"type": "integer", "minimum": 0},
        }
        for name, what in _TIMES.items()
    },
}


async def answer_rerank(call: Call, fields: dict[str, Any]) -> Response:
    """The ranked texts.

    Raises:
        ServiceError: As `score_pairs` does.
    """
    body = validated(TeiRerankRequest, fields)
    asked = Asked(
        [body.query],
        body.texts,
        texts_field="texts",
        text_place="texts[{}]",
        may_cut=body.truncate is not False,
    )
    scored = await score_pairs(call, asked)
    values = scored.margins if body.raw_scores else scored.scores
    ranks: list[dict[str, Any]] = []
    for index in ranking(values):
        rank = {"index": index, "score": values[index]}
        ranks.append({**rank, "text": body.texts[index]} if body.return_text else rank)
    return json_response(ranks, headers=_headers(asked, scored))


@router.post(
    PREDICT_ROUTE,
    summary="Score pairs",
    response_model=list[TeiPrediction] | list[list[TeiPrediction]],
    responses={
        **answered("One prediction, or one for each pair.", TIMING_HEADERS),
        **TEI.documented_errors(),
    },
    openapi_extra={
        "requestBody": request_body(TeiPredictRequest),
        "parameters": COMPATIBLE_PARAMETERS,
    },
)
async def predict(request: Request) -> Response:
    """Score one pair, or an array of pairs, each with its own query.

    The only label is `relevant`. A text without its query cannot be scored.
    """
    return await counted(request, PREDICT_ROUTE, TEI, _answer_predict)


async def _answer_predict(call: Call) -> Response:
    fields = await read_fields(call)
    if isinstance(fields.get("inputs"), str):
        raise invalid("inputs", "a text alone cannot be scored; give [query, ad]")
    body = validated(TeiPredictRequest, fields)
    is_batch = not (body.inputs and all(isinstance(one, str) for one in body.inputs))
    max_pairs = call.state.limits.max_ads
    if is_batch and len(body.inputs) > max_pairs:  # before each is looked at
        raise TooManyAds(len(body.inputs), max_pairs, "inputs")
    pairs = [
        _pair(pair, f"inputs[{number}]" if is_batch else "inputs")
        for number, pair in enumerate(body.inputs if is_batch else [body.inputs])
    ]
    asked = Asked(
        [query for query, _ in pairs],
        [text for _, text in pairs],
        texts_field="inputs",
        query_place="inputs[{}][0]" if is_batch else "inputs[0]",
        text_place="inputs[{}][1]" if is_batch else "inputs[1]",
        may_cut=body.truncate is not False,
    )
    scored = await score_pairs(call, asked)
    values = scored.margins if body.raw_scores else scored.scores
    predictions = [[{"score": value, "label": LABEL}] for value in values]
    content = predictions if is_batch else predictions[0]
    return json_response(content, headers=_headers(asked, scored))


def _pair(texts: object, name: str) -> tuple[str, str]:
    match texts:
        case [str(query), str(text)]:
            return query, text
    raise invalid(name, "must be a pair of strings, [query, ad]")


@router.get(
    INFO_ROUTE,
    summary="The model and the limits",
    response_model=TeiInfo,
    responses=TEI.documented_errors(Unauthorized, NotReady, ServiceError),
)
async def info(request: Request) -> Response:
    """The model and the limits, as text-embeddings-inference tells of them."""
    state = state_of(request)
    try:
        _, _, model = state.ready_parts()
    except NotReady as error:
        return TEI.error_response(request, error)
    dtypes = {"fp32": "float32", "fp16": "float16"}
    weights = model["precision"]["weights"]
    labels = {"id2label": {"0": LABEL}, "label2id": {LABEL: 0}}
    content = {
        "model_id": model["model"]["name"],
        "model_sha": model["model"]["version"],
        "model_dtype": dtypes.get(weights, weights),
        "model_type": {"reranker": labels},
        "max_concurrent_requests": NO_SUCH_LIMIT,
        "max_input_length": model["inputs"]["max_length_tokens"],
        "max_batch_tokens": model["max_batch_tokens"],
        "max_batch_requests": model["max_batch_pairs"],
        "max_client_batch_size": state.limits.max_ads,
        "auto_truncate": True,
        "tokenization_workers": 1,
        "version": release(),
        "sha": None,
        "docker_label": None,
    }
    return json_response(content)


@router.get(
    HEALTH_ROUTE,
    summary="Can it score now?",
    response_model=TeiHealth,
    responses=TEI.documented_errors(NotReady, ServiceError),
)
async def health(request: Request) -> Response:
    """200 while scores can be served."""
    why = state_of(request).why_not_ready()
    if why is None:
        return json_response({"unix": time.time()})
    return TEI.error_response(request, NotReady(why))


def _headers(asked: Asked, scored: Scored) -> dict[str, str]:
    """Where the time went, in whole milliseconds."""
    times = scored.times
    return {
        **scored.headers,
        "x-compute-type": f"{scored.model['provider']}+optimized",
        "x-compute-time": _ms(times.total_s),
        "x-compute-characters": str(asked.n_chars),
        "x-compute-tokens": str(scored.computed_tokens),
        "x-total-time": _ms(times.total_s),
        "x-tokenization-time": _ms(times.encode_s),
        "x-queue-time": _ms(times.queue_s),
        "x-inference-time": _ms(times.inference_s),
    }


def _ms(seconds: float) -> str:
    return str(round(seconds * 1000))
