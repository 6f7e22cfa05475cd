"""All routes in other protocols, for `service.app` to join."""

from __future__ import annotations

from typing import Any

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
from service.errors import InvalidRequest

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
    tei.TeiRerankRequest,
    tei.TeiPredictRequest,
    rerank.DocumentsRerankRequest,
    cohere_jina.RerankRequest,
    *vllm.SCORE_BODIES,
    InferRequest,
)
"""What the routes read by themselves, for the OpenAPI document."""

# By the beginning of a path; the longer one first where one begins another.
_DIALECTS: tuple[tuple[str, Dialect], ...] = (
    (cohere_jina.V2_ROUTE, COHERE_JINA),
    (cohere_jina.V1_ROUTE, COHERE_JINA),
    (rerank.RERANK_ROUTE, TEI),
    (tei.PREDICT_ROUTE, TEI),
    (vllm.SCORE_ROUTE, OPENAI),
    ("/v2", OPEN_INFERENCE),
)


def routing_error(path: str, status: int, message: str) -> dict[str, Any] | None:
    """The body for a path or method that does not exist, as the path's clients parse it.

    Args:
        path: Of the request.
        status: 404 or 405.
        message: What is wrong.

    Returns:
        None where the path is nobody's but ours.
    """
    for beginning, dialect in _DIALECTS:
        if path == beginning or path.startswith(f"{beginning}/"):
            return dialect.body(status, InvalidRequest(message, []))
    return None
