"""text-embeddings-inference: POST /predict, GET /info, GET /health, and its half of POST /rerank.

Shapes as of its version 1.8: https://huggingface.github.io/text-embeddings-inference
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, FailFast, Field, WithJsonSchema

from service.api.answering import TIMEOUT_PARAMETER, invalid
from service.api.compatible.calls import (
    Call,
    LenientBody,
    body_schema,
    counted,
    read_fields,
    validated,
)
from service.api.compatible.dialects import TEI, TeiError
from service.api.compatible.documents import ranking
from service.api.compatible.pair_scoring import Asked, Scored, score_pairs
from service.api.compatible.release import release
from service.api.json_response import json_response
from service.api.schemas import REQUEST_ID_HEADER
from service.api.state import state_of
from service.errors import NotReady, TooManyAds

PREDICT_ROUTE = "/predict"
INFO_ROUTE = "/info"
HEALTH_ROUTE = "/health"

LABEL = "relevant"
NO_SUCH_LIMIT = 2**31 - 1

router = APIRouter(tags=["text-embeddings-inference"])


_PAIR = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
_PAIRS = {"type": "array", "items": _PAIR}


class TeiOptions(LenientBody):
    """What both requests may ask for."""

    truncate: bool | None = Field(
        default=None, description="False: refuse a text that does not fit. Else its end is cut."
    )
    truncation_direction: Literal["Right", "right"] | None = Field(
        default=None, description="Texts are cut on the right alone."
    )
    raw_scores: bool | None = Field(default=None, description="The logit instead of the score.")


class TeiRerankRequest(TeiOptions):
    """A query and the texts to rank for it."""

    query: str
    texts: Annotated[list[str], FailFast()] = Field(description="At most max_ads_per_request.")
    return_text: bool | None = None


class TeiRank(BaseModel):
    """One text's place; the answer is an array of them, best first."""

    index: int
    score: float
    text: str | None = Field(default=None, description="Only where return_text was true.")


class TeiPredictRequest(TeiOptions):
    """One pair `[query, ad]`, or an array of pairs."""

    inputs: Annotated[list[Any], WithJsonSchema({"anyOf": [_PAIR, _PAIRS]})]


class TeiPrediction(BaseModel):
    """The score of a pair; the only label is `relevant`."""

    score: float
    label: str


class TeiModelType(BaseModel):
    """What kind of model serves."""

    reranker: dict[str, dict[str, Any]]


class TeiInfo(BaseModel):
    """The model and the limits, in text-embeddings-inference's words."""

    model_id: str
    model_sha: str
    model_dtype: str
    model_type: TeiModelType
    max_concurrent_requests: int = Field(description="No limit of this kind: time is the limit.")
    max_input_length: int
    max_batch_tokens: int
    max_batch_requests: int
    max_client_batch_size: int
    auto_truncate: bool
    tokenization_workers: int
    version: str
    sha: None
    docker_label: None


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
    response_model=list[TeiPrediction] | list[list[TeiPrediction]],
    responses=TEI.documented_errors(),
    openapi_extra={
        "requestBody": body_schema(TeiPredictRequest),
        "parameters": [TIMEOUT_PARAMETER],
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


@router.get(INFO_ROUTE, response_model=TeiInfo, responses={503: {"model": TeiError}})
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


@router.get(HEALTH_ROUTE, response_class=Response, responses={503: {"model": TeiError}})
async def health(request: Request) -> Response:
    """200 without a body while scores can be served."""
    why = state_of(request).why_not_ready()
    if why is None:
        return Response()
    return TEI.error_response(request, NotReady(why))


def _headers(asked: Asked, scored: Scored) -> dict[str, str]:
    """Where the time went, in whole milliseconds."""
    times = scored.times
    return {
        REQUEST_ID_HEADER: scored.request_id,
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
