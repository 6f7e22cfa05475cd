"""Cohere's POST /v1/rerank and /v2/rerank, and Jina's POST /v1/rerank.

Shapes as of docs.cohere.com/reference/rerank and docs.cohere.com/v1/reference/rerank, and of
api.jina.ai/redoc. The answers have the fields of both, and of vLLM, which serves these paths too.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.compatible.calls import Call, counted, read_fields, validated
from service.api.compatible.dialects import COHERE_JINA
from service.api.compatible.documents import (
    DocumentOut,
    RerankBody,
    Usage,
    document_out,
    document_texts,
    priority_class,
    ranking,
    usage,
)
from service.api.compatible.pair_scoring import Asked, Scored, score_pairs
from service.api.compatible.vllm_options import check_room
from service.api.json_response import json_response
from service.api.openapi_parts import ANSWER_HEADERS, COMPATIBLE_PARAMETERS, answered, request_body

V1_ROUTE = "/v1/rerank"
V2_ROUTE = "/v2/rerank"

# Where a caller says nothing about documents in the answer, Cohere leaves them out, while Jina and
# vLLM put them in. So /v1/rerank puts them in too, unless one of these shows that Cohere is meant.
COHERE_FIELDS = ("rank_fields", "max_chunks_per_doc", "max_tokens_per_doc")

WITHOUT_EFFECT = ("max_chunks_per_doc", "max_tokens_per_doc", "relevant_spans")

router = APIRouter(tags=["rerank"])


class RerankRequest(RerankBody):
    """A query and documents to rank for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model": "rerank-v3.5",
                    "query": "best running shoes",
                    "documents": ["Printer Ink Outlet", "Marathon Elite Shoes"],
                    "top_n": 1,
                }
            ]
        }
    )

    rank_fields: list[str] | None = Field(
        default=None,
        fail_fast=True,
        description="Of documents that are objects, the fields to read, in order; those that are "
        "there.",
    )
    max_tokens_per_doc: int | None = Field(
        default=None, description="No effect: a document is cut where the model's room ends."
    )
    max_chunks_per_doc: int | None = Field(default=None, description="No effect: never chunked.")


class RerankResult(BaseModel):
    """One document's place."""

    index: int = Field(ge=0, description="In the request.")
    relevance_score: float = Field(
        description="Calibrated, in 0-1; the logit where that was asked for."
    )
    document: DocumentOut | None = Field(default=None, description="See the route.")


class BilledUnits(BaseModel):
    """What Cohere would bill."""

    search_units: int = Field(description="Always 1.")


class ApiVersion(BaseModel):
    """Of the route."""

    version: str = Field(description="1 or 2.")


class RerankMeta(BaseModel):
    """What Cohere says about its answers."""

    api_version: ApiVersion = Field(description="Of Cohere's API.")
    billed_units: BilledUnits = Field(description="Nothing is billed; clients look for it.")
    warnings: list[str] | None = Field(
        default=None, description="Fields that had no effect, and how many documents were cut."
    )


class RerankResponse(BaseModel):
    """Documents in the order of their scores."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "bac6be2f5fc0c3a2-1",
                    "model": "adrel-minilm-l6",
                    "results": [
                        {
                            "index": 1,
                            "relevance_score": 0.8410663532199538,
                            "document": {"text": "Marathon Elite Shoes"},
                        }
                    ],
                    "usage": {"prompt_tokens": 21, "total_tokens": 21},
                    "meta": {
                        "api_version": {"version": "1"},
                        "billed_units": {"search_units": 1},
                    },
                }
            ]
        }
    )

    id: str = Field(description="The request's id, also in X-Request-Id.")
    model: str = Field(description="Name of the model that gave the scores.")
    results: list[RerankResult] = Field(description="Best first.")
    usage: Usage = Field(description="What was computed for it; Jina's and vLLM's clients read it.")
    meta: RerankMeta = Field(description="Cohere's clients read it.")


def _route(
    path: str, summary: str
) -> Callable[[Callable[[Request], Awaitable[Response]]], Callable[[Request], Awaitable[Response]]]:
    return router.post(
        path,
        summary=summary,
        response_model=RerankResponse,
        responses={**answered("Best first.", ANSWER_HEADERS), **COHERE_JINA.documented_errors()},
        openapi_extra={
            "requestBody": request_body(RerankRequest),
            "parameters": COMPATIBLE_PARAMETERS,
        },
    )


@_route(V1_ROUTE, "Rank documents (Cohere v1, Jina)")
async def rerank_v1(request: Request) -> Response:
    """Rank documents by their relevance to a query, for clients of Cohere's v1 and of Jina.

    Documents are in the answer unless `return_documents` is false, or unless it is absent and a
    field of Cohere's is given (`rank_fields`, `max_chunks_per_doc`, `max_tokens_per_doc`).
    """

    async def answer(call: Call) -> Response:
        fields = await read_fields(call)
        return await _answer(call, fields, "1", _is_for_jina(fields))

    return await counted(request, V1_ROUTE, COHERE_JINA, answer)


@_route(V2_ROUTE, "Rank documents (Cohere v2)")
async def rerank_v2(request: Request) -> Response:
    """Rank documents by their relevance to a query, for clients of Cohere's v2.

    Documents are in the answer only where `return_documents` is true.
    """

    async def answer(call: Call) -> Response:
        return await _answer(call, await read_fields(call), "2", documents_by_default=False)

    return await counted(request, V2_ROUTE, COHERE_JINA, answer)


def _is_for_jina(fields: dict[str, Any]) -> bool:
    """No field of Cohere's is given."""
    return not any(fields.get(name) is not None for name in COHERE_FIELDS)


async def _answer(
    call: Call, fields: dict[str, Any], api_version: str, documents_by_default: bool
) -> Response:
    body = validated(RerankRequest, fields)
    check_room(call, body)
    texts = document_texts(body.documents, body.rank_fields or ())
    asked = Asked([body.query], texts, priority=priority_class(body.priority))
    scored = await score_pairs(call, asked)
    wanted = body.return_documents
    with_documents = documents_by_default if wanted is None else wanted
    results: list[dict[str, Any]] = []
    values = scored.margins if body.wants_logits else scored.scores
    for index in ranking(values, body.top_n):
        result: dict[str, Any] = {"index": index, "relevance_score": values[index]}
        if with_documents:
            result["document"] = document_out(body.documents[index])
        results.append(result)
    meta: dict[str, Any] = {
        "api_version": {"version": api_version},
        "billed_units": {"search_units": 1},
    }
    warnings = _warnings(fields, scored, len(texts))
    if warnings:
        meta["warnings"] = warnings
    content = {
        "id": scored.request_id,
        "model": scored.model["model"]["name"],
        "results": results,
        "usage": usage(scored.computed_tokens),
        "meta": meta,
    }
    return json_response(content, headers=scored.headers)


def _warnings(fields: dict[str, Any], scored: Scored, n_documents: int) -> list[str]:
    room = scored.model["inputs"]["max_length_tokens"]
    reason = f"a query and a document are read together up to {room} tokens"
    unused = [name for name in WITHOUT_EFFECT if fields.get(name) is not None]
    warnings = [f"{name} has no effect: {reason}" for name in unused]
    if scored.n_truncated:
        warnings.append(f"{scored.n_truncated} of {n_documents} documents were cut: {reason}")
    return warnings
