"""The Open Inference Protocol V2, as KServe and Triton speak it over HTTP.

https://github.com/kserve/open-inference-protocol, with Triton's parameters `priority` and `timeout`
and its binary tensor data extension, which its Python client uses unless told otherwise.
"""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response

from service.api.compatible.calls import Call, counted
from service.api.compatible.dialects import OPEN_INFERENCE, UnknownModel
from service.api.compatible.open_inference_bodies import (
    InferRequest,
    InferResponse,
    ModelMetadata,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from service.api.compatible.open_inference_scoring import (
    INPUTS,
    OUTPUTS,
    answer_infer,
    identity_of,
)
from service.api.compatible.release import release
from service.api.compatible.tensors import HEADER
from service.api.json_response import json_response
from service.api.openapi_parts import ANSWER_HEADERS, COMPATIBLE_PARAMETERS, request_body
from service.api.state import state_of
from service.errors import NotLive, NotReady, ServiceError, Unauthorized

MODEL = "/v2/models/{model}"
VERSION = f"{MODEL}/versions/{{version}}"
INFER_ROUTE = f"{MODEL}/infer"

BINARY = {"schema": {"type": "string", "format": "binary"}, "example": "JSON, then bytes"}

_CLOSED_FAULT = OPEN_INFERENCE.documented_errors(Unauthorized, ServiceError)
_OF_A_MODEL = OPEN_INFERENCE.documented_errors(Unauthorized, UnknownModel, NotReady, ServiceError)
_METADATA: dict[str, Any] = {"response_model": ModelMetadata, "responses": _OF_A_MODEL}
_READY: dict[str, Any] = {"response_model": ModelReady, "responses": _OF_A_MODEL}

_HEADER = {
    "description": "Bytes of JSON before the binary tensors; absent where there are none.",
    "schema": {"type": "integer", "minimum": 0},
}
_BODY = request_body(InferRequest)
_BODY["content"]["application/octet-stream"] = BINARY
_INFER: dict[str, Any] = {
    "response_model": InferResponse,
    "responses": {
        200: {
            "description": "A score for every ad.",
            "headers": {**ANSWER_HEADERS, HEADER: _HEADER},
            "content": {"application/octet-stream": BINARY},
        },
        **OPEN_INFERENCE.documented_errors(),
    },
    "openapi_extra": {
        "requestBody": _BODY,
        "parameters": [
            *COMPATIBLE_PARAMETERS,
            {"name": HEADER, "in": "header", "required": False, "example": 412, **_HEADER},
        ],
    },
}

ModelName = Annotated[str, Path(description="Name of the model that serves.")]
ModelVersion = Annotated[str, Path(description="Its version, or 1 for whichever serves.")]

router = APIRouter(tags=["open inference protocol"])


@router.get(
    "/v2",
    summary="Which server this is",
    response_model=ServerMetadata,
    responses=_CLOSED_FAULT,
)
async def server_metadata() -> Response:
    """Which server this is, and which extensions it has."""
    extensions = ["binary_tensor_data", "parameters"]
    return json_response({"name": "adrel", "version": release(), "extensions": extensions})


@router.get(
    "/v2/health/live",
    summary="Is the process alive?",
    response_model=ServerLive,
    responses=OPEN_INFERENCE.documented_errors(NotLive, ServiceError),
)
async def live(request: Request) -> Response:
    """200 while the process works."""
    why = state_of(request).why_not_live()
    if why is not None:
        return OPEN_INFERENCE.error_response(request, NotLive(why))
    return json_response({"live": True})


@router.get(
    "/v2/health/ready",
    summary="Can it score now?",
    response_model=ServerReady,
    responses=OPEN_INFERENCE.documented_errors(NotReady, ServiceError),
)
async def ready(request: Request) -> Response:
    """200 while scores can be served."""
    why = state_of(request).why_not_ready()
    if why is not None:
        return OPEN_INFERENCE.error_response(request, NotReady(why))
    return json_response({"ready": True})


@router.get(MODEL, summary="Inputs and outputs of the model", **_METADATA)
async def model_metadata(request: Request, model: ModelName) -> Response:
    """What the model takes and gives."""
    return _metadata(request, model)


@router.get(VERSION, summary="Inputs and outputs of a version of the model", **_METADATA)
async def version_metadata(request: Request, model: ModelName, version: ModelVersion) -> Response:
    """What this version of the model takes and gives."""
    return _metadata(request, model, version)


@router.get(f"{MODEL}/ready", summary="Can the model be asked?", **_READY)
async def model_ready(request: Request, model: ModelName) -> Response:
    """200 while this model can be asked."""
    return _ready(request, model)


@router.get(f"{VERSION}/ready", summary="Can a version of the model be asked?", **_READY)
async def version_ready(request: Request, model: ModelName, version: ModelVersion) -> Response:
    """200 while this version of the model can be asked."""
    return _ready(request, model, version)


@router.post(INFER_ROUTE, summary="Score ads by the model", **_INFER)
async def infer(request: Request, model: ModelName) -> Response:
    """Score ads: BYTES tensors `query` (one row for all ads, or one each) and `ad`.

    Gives the FP32 tensor `score`, and `logit` if it is asked for by name. The header
    `Inference-Header-Content-Length` says where the JSON ends and binary tensor data begins.
    """
    return await _infer(request, model)


@router.post(f"{VERSION}/infer", summary="Score ads by a version of the model", **_INFER)
async def infer_version(request: Request, model: ModelName, version: ModelVersion) -> Response:
    """Score ads by this version of the model; see the route without a version."""
    return await _infer(request, model, version)


def _metadata(request: Request, model: str, version: str | None = None) -> Response:
    try:
        identity = identity_of(state_of(request), model, version)
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


def _ready(request: Request, model: str, version: str | None = None) -> Response:
    try:
        identity = identity_of(state_of(request), model, version)
    except ServiceError as error:
        return OPEN_INFERENCE.error_response(request, error)
    return json_response({"name": identity["name"], "ready": True})


async def _infer(request: Request, model: str, version: str | None = None) -> Response:
    async def answer(call: Call) -> Response:
        return await answer_infer(call, model, version)

    return await counted(request, INFER_ROUTE, OPEN_INFERENCE, answer)
