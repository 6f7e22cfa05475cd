"""What operators and orchestrators ask: alive, ready, metrics, which model."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import BaseModel, ConfigDict, Field

from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.state import state_of
from service.errors import NotLive, NotReady, ServiceError, Unauthorized

MODEL_SCHEMA = "ServedModel"

router = APIRouter(tags=["operations"])

metrics_router = APIRouter(tags=["operations"])
"""Apart, since the metrics go to the admin port where there is one."""


class Live(BaseModel):
    """The process answers, and nothing in it is stuck."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "live"}]})

    status: Literal["live"] = Field(description="Always the same.")


class Ready(BaseModel):
    """Scores can be served."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "ready"}]})

    status: Literal["ready"] = Field(description="Always the same.")


@router.get(
    "/livez",
    summary="Is the process alive?",
    response_model=Live,
    responses=documented_errors(NotLive, ServiceError),
)
async def livez(request: Request) -> dict[str, str]:
    """200 while the process works; restart it where this fails."""
    why = state_of(request).why_not_live()
    if why is not None:
        raise NotLive(why)
    return {"status": "live"}


@router.get(
    "/readyz",
    summary="Can it score now?",
    response_model=Ready,
    responses=documented_errors(NotReady, ServiceError),
)
async def readyz(request: Request) -> dict[str, str]:
    """200 while scores can be served; send traffic elsewhere where this fails."""
    why = state_of(request).why_not_ready()
    if why is not None:
        raise NotReady(why)
    return {"status": "ready"}


@metrics_router.get(
    "/metrics",
    summary="Prometheus metrics",
    response_class=Response,
    responses={
        200: {
            "description": "Prometheus' text exposition.",
            "content": {
                "text/plain": {
                    "schema": {"type": "string"},
                    "example": 'adrel_requests_total{outcome="ok",route="/v1/score"} 41.0\n',
                }
            },
        },
        **documented_errors(Unauthorized, ServiceError),
    },
)
async def metrics(request: Request) -> Response:
    """Counters, gauges and histograms of all workers; all series exist from the start."""
    state = state_of(request)
    if state.all_series is not None:
        content = await state.all_series()
    else:
        content = generate_latest(state.metrics.registry)
    return Response(content, media_type=CONTENT_TYPE_LATEST)


@router.get(
    "/v1/model",
    summary="Facts of the model",
    response_class=Response,
    responses={
        200: {
            "description": "All that its manifest says, and how it is served.",
            "content": {
                "application/json": {"schema": {"$ref": f"#/components/schemas/{MODEL_SCHEMA}"}}
            },
        },
        **documented_errors(Unauthorized, NotReady, ServiceError),
    },
)
async def model(request: Request) -> Response:
    """The facts of the model that serves: identity, inputs, parity, quality, calibration."""
    _, _, facts = state_of(request).ready_parts()
    return json_response(facts)
