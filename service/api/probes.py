"""What operators and orchestrators ask: alive, ready, metrics, which model."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.state import state_of
from service.errors import NotReady

router = APIRouter(tags=["operations"])

metrics_router = APIRouter(tags=["operations"])
"""Apart, since the metrics go to the admin port where there is one."""


@router.get("/livez")
async def livez() -> dict[str, str]:
    """200 while the process can answer at all; restart it where this fails."""
    return {"status": "live"}


@router.get("/readyz", responses={503: documented_errors()[503]})
async def readyz(request: Request) -> dict[str, str]:
    """200 while scores can be served; send traffic elsewhere where this fails."""
    why = state_of(request).why_not_ready()
    if why is not None:
        raise NotReady(why)
    return {"status": "ready"}


@metrics_router.get("/metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Prometheus exposition."""
    content = generate_latest(state_of(request).metrics.registry)
    return Response(content, media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/model", response_class=Response, responses={503: documented_errors()[503]})
async def model(request: Request) -> Response:
    """The facts of the model that serves: identity, inputs, parity, quality, calibration."""
    _, _, facts = state_of(request).ready_parts()
    return json_response(facts)
