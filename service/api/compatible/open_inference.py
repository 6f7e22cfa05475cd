"""The Open Inference Protocol V2, as KServe and Triton speak it over HTTP.

https://github.com/kserve/open-inference-protocol, with Triton's parameters `priority` and `timeout`
and its binary tensor data extension, which its Python client uses unless told otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.answering import TIMEOUT_PARAMETER, invalid
from service.api.body import read_body
from service.api.compatible.calls import (
    Call,
    body_schema,
    counted,
    parse_fields,
    validated,
)
from service.api.compatible.dialects import OPEN_INFERENCE, OpenInferenceError, UnknownModel
from service.api.compatible.documents import priority_class
from service.api.compatible.open_inference_bodies import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    OutputWanted,
    ServerMetadata,
)
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.compatible.release import release
from service.api.compatible.tensors import HEADER, input_texts, output_body, split_body
from service.api.json_response import json_response
from service.api.schemas import REQUEST_ID_HEADER, is_request_id
from service.api.state import ServiceState, state_of
from service.errors import NotReady, ServiceError

INFER_ROUTE = "/v2/models/{model}/infer"

MOST_URGENT = 1  # in Triton's numbers, where 0 is the default

INPUTS = ("query", "ad")
OUTPUTS = ("score", "logit")

NOT_READY = {"model": OpenInferenceError, "description": "Starting or draining."}
# Without this one FastAPI documents an error of its own for the names in the path.
OTHER = {"model": OpenInferenceError, "description": "Any other error."}
NOT_FOUND = {"model": OpenInferenceError, "description": "Another model or version, or no route."}

OF_A_MODEL: dict[int | str, dict[str, Any]] = {
    404: NOT_FOUND,
    503: NOT_READY,
    "default": OTHER,
}

router = APIRouter(tags=["open inference protocol"])


@router.get("/v2", response_model=ServerMetadata)
async def server_metadata() -> Response:
    """Which server this is, and which extensions it has."""
    extensions = ["binary_tensor_data", "parameters"]
    return json_response({"name": "adrel", "version": release(), "extensions": extensions})


@router.get("/v2/health/live", response_model=dict[str, bool])
async def live() -> Response:
    """200 while the process can answer at all."""
    return json_response({"live": True})


@router.get("/v2/health/ready", response_model=dict[str, bool], responses={503: NOT_READY})
async def ready(request: Request) -> Response:
    """200 while scores can be served."""
    why = state_of(request).why_not_ready()
    if why is not None:
        return OPEN_INFERENCE.error_response(request, NotReady(why))
    return json_response({"ready": True})


@router.get("/v2/models/{model}", response_model=ModelMetadata, responses=OF_A_MODEL)
@router.get(
    "/v2/models/{model}/versions/{version}",
    response_model=ModelMetadata,
    responses=OF_A_MODEL,
)
async def model_metadata(request: Request, model: str, version: str | None = None) -> Response:
    """What the model takes and gives."""
    try:
        identity = _identity(state_of(request), model, version)
    except ServiceError as error:
        return OPEN_INFERENCE.error_response(request, error)
    tensors = [{"name": name, "datatype": "BYTES", "shape": [-1]} for name in INPUTS]
    outputs = [{"name": name, "datatype": "FP32", "shape": [-1]} for name in OUTPUTS]
    content = {
        "name": identity["name"],
        "versions": [identity["version"]],
        "platform": "onnxruntime_onnx",
        "inputs": tensors,
        "outputs": outputs,
    }
    return json_response(content)


@router.get(
    "/v2/models/{model}/ready",
    response_model=dict[str, str | bool],
    responses=OF_A_MODEL,
)
@router.get(
    "/v2/models/{model}/versions/{version}/ready",
    response_model=dict[str, str | bool],
    responses=OF_A_MODEL,
)
async def model_ready(request: Request, model: str, version: str | None = None) -> Response:
    """200 while this model can be asked."""
    try:
        identity = _identity(state_of(request), model, version)
    except ServiceError as error:
        return OPEN_INFERENCE.error_response(request, error)
    return json_response({"name": identity["name"], "ready": True})


@router.post(
    INFER_ROUTE,
    response_model=InferResponse,
    responses={**OPEN_INFERENCE.documented_errors(), "default": OTHER},
    openapi_extra={"requestBody": body_schema(InferRequest), "parameters": [TIMEOUT_PARAMETER]},
)
@router.post(
    "/v2/models/{model}/versions/{version}/infer",
    response_model=InferResponse,
    responses={**OPEN_INFERENCE.documented_errors(), "default": OTHER},
    openapi_extra={"requestBody": body_schema(InferRequest), "parameters": [TIMEOUT_PARAMETER]},
)
async def infer(request: Request, model: str, version: str | None = None) -> Response:
    """Score ads: BYTES tensors `query` (one row for all ads, or one each) and `ad`.

    Gives the FP32 tensor `score`, and `logit` if it is asked for by name. The header
    `Inference-Header-Content-Length` says where the JSON ends and binary tensor data begins.
    """

    async def answer(call: Call) -> Response:
        return await _answer(call, model, version)

    return await counted(request, INFER_ROUTE, OPEN_INFERENCE, answer)


async def _answer(call: Call, model: str, version: str | None) -> Response:
    request = call.request
    identity = _identity(call.state, model, version)
    # Triton's client declares no content type, and with binary data it is not JSON alone.
    content = await read_body(request, call.state.limits, any_type=True)
    head, binary = split_body(content, request.headers.get(HEADER))
    body = validated(InferRequest, parse_fields(head))
    texts = input_texts(body.inputs, binary)
    for name in INPUTS:
        if name not in texts:
            raise invalid("inputs", f"needs a tensor {name}")
    queries, ads = texts["query"], texts["ad"]
    if ads and len(queries) not in (1, len(ads)):
        raise invalid("query", f"must have 1 row or {len(ads)}, one for each ad: {len(queries)}")
    parameters = body.parameters or {}
    wanted = _wanted(body.outputs, parameters.get("binary_data_output") is True)
    own_id = body.id if body.id is not None and is_request_id(body.id) else None
    asked = Asked(
        queries,
        ads,
        texts_field="ad",
        query_place="query" if len(queries) == 1 else "query[{}]",
        text_place="ad[{}]",
        priority=priority_class(_number(parameters, "priority"), MOST_URGENT),
        timeout_ms=_timeout_ms(parameters),
        request_id=own_id,
    )
    scored = await score_pairs(call, asked)
    values = {"score": scored.scores, "logit": scored.margins}
    answer = {"model_name": identity["name"], "model_version": identity["version"]}
    answer |= {} if body.id is None else {"id": body.id}
    shape = next(tensor.shape for tensor in body.inputs if tensor.name == "ad")
    outputs = [(name, values[name], as_bytes) for name, as_bytes in wanted]
    content, json_bytes = output_body(answer, outputs, shape)
    headers = {REQUEST_ID_HEADER: scored.request_id}
    if json_bytes is None:
        return Response(content, headers=headers, media_type="application/json")
    headers[HEADER] = str(json_bytes)
    return Response(content, headers=headers, media_type="application/octet-stream")


def _identity(state: ServiceState, model: str, version: str | None) -> dict[str, str]:
    """Name and version of the model that serves.

    Raises:
        NotReady: None does now.
        UnknownModel: The path names another.
    """
    _, _, facts = state.ready_parts()
    identity: dict[str, str] = facts["model"]
    if model != identity["name"]:
        raise UnknownModel(f"unknown model {model[:100]!r}; {identity['name']!r} serves here")
    if version is not None and version != identity["version"]:
        raise UnknownModel(
            f"unknown version {version[:100]!r} of {model!r}; {identity['version']!r} serves here"
        )
    return identity


def _wanted(outputs: Sequence[OutputWanted] | None, binary: bool) -> list[tuple[str, bool]]:
    """Names of the outputs, and whether each goes as bytes."""
    if not outputs:
        return [("score", binary)]
    wanted: dict[str, bool] = {}
    for output in outputs:
        if output.name not in OUTPUTS:
            raise invalid("outputs", f"there is no {output.name[:100]!r}, only score and logit")
        parameters = output.parameters or {}
        if "shared_memory_region" in parameters or "classification" in parameters:
            raise invalid(output.name, "neither shared memory nor classification is there")
        wanted[output.name] = parameters.get("binary_data", binary) is True
    return list(wanted.items())


def _timeout_ms(parameters: dict[str, Any]) -> float | None:
    timeout_us = _number(parameters, "timeout")
    return timeout_us / 1000 if timeout_us else None


def _number(parameters: dict[str, Any], name: str) -> int | None:
    """A parameter that is a number of 0 or more; 0 is its default.

    Raises:
        InvalidRequest: It is something else.
    """
    value = parameters.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise invalid(f"parameters.{name}", "must be a number of 0 or more")
    return math.ceil(value) if value < 1e15 else 10**15
