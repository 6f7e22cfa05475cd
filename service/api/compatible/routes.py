"""All routes in other protocols, for `service.app` to join."""

from __future__ import annotations

from pydantic import BaseModel

from service.api.compatible import cohere_jina, open_inference, rerank, tei, vllm
from service.api.compatible.open_inference_bodies import InferRequest

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
