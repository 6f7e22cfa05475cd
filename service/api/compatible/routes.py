"""All routes in other protocols, for `service.app` to join."""

from __future__ import annotations

from typing import Any

from fastapi import Request, Response
from pydantic import BaseModel

from service.api.compatible import cohere_jina, open_inference, rerank, tei, vllm
from service.api.compatible.dialects import (
    COHERE_JINA,
    OPEN_INFERENCE,
    OPENAI,
    TEI,
    Dialect,
)
from service.api.compatible.open_inference_bodies import InferRequest
from service.api.compatible.tei_bodies import TeiPredictRequest, TeiRerankRequest
from service.api.compatible.vllm_bodies import SCORE_BODIES
from service.api.error_handlers import service_error_response
from service.errors import InvalidRequest, ServiceError

ROUTERS = (
    rerank.router,
    tei.router,
    cohere_jina.router,
    vllm.router,
    open_inference.router,
)

COUNTED_ROUTES = (
    rerank.RERANK_ROUTE,
    tei.PREDICT_ROUTE,
    cohere_jina.V1_ROUTE,
    cohere_jina.V2_ROUTE,
    vllm.SCORE_ROUTE,
    open_inference.INFER_ROUTE,
)
"""Values of the label `route`, one for each path template but for the version in the last one."""

BODIES: tuple[type[BaseModel], ...] = (
    TeiRerankRequest,
    TeiPredictRequest,
    rerank.DocumentsRerankRequest,
    cohere_jina.RerankRequest,
    *SCORE_BODIES,
    InferRequest,
)
"""What the routes read by themselves, for the OpenAPI document."""

# By the beginning of a path; the longer one first where one begins another.
_DIALECTS: tuple[tuple[str, Dialect], ...] = (
    (cohere_jina.V2_ROUTE, COHERE_JINA),
    (cohere_jina.V1_ROUTE, COHERE_JINA),
    (rerank.RERANK_ROUTE, TEI),
    (tei.PREDICT_ROUTE, TEI),
    (tei.INFO_ROUTE, TEI),
    (tei.HEALTH_ROUTE, TEI),
    (vllm.SCORE_ROUTE, OPENAI),
    ("/v2", OPEN_INFERENCE),
)


def routing_error(path: str, status: int, message: str) -> dict[str, Any] | None:
    """The body for a wrong path or method, or a fault of ours, as the path's clients parse it.

    Args:
        path: Of the request.
        status: 404, 405 or 500.
        message: What is wrong.

    Returns:
        None where the path is nobody's but ours.
    """
    dialect = _dialect_of(path)
    if dialect is None:
        return None
    error = ServiceError(message) if status == 500 else InvalidRequest(message)
    return dialect.body(status, error)


def refusal(request: Request, error: ServiceError) -> Response:
    """The answer for an error that comes before any route, as the path's clients parse it."""
    dialect = _dialect_of(request.url.path)
    if dialect is None:
        return service_error_response(request, error)
    return dialect.error_response(request, error)


def counted_route(path: str) -> str | None:
    """The label `route` under which requests for a path are counted; None where they are not."""
    if path in COUNTED_ROUTES:
        return path
    is_infer = path.startswith("/v2/models/") and path.endswith("/infer")
    return open_inference.INFER_ROUTE if is_infer else None


def _dialect_of(path: str) -> Dialect | None:
    for beginning, dialect in _DIALECTS:
        if path == beginning or path.startswith(f"{beginning}/"):
            return dialect
    return None
