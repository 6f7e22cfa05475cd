"""`POST /rerank` with `documents`: Infinity's and vLLM's; with `texts` it is another server's.

Shapes as of michaelfeil/infinity 0.0.77 and of vLLM 0.13.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from service.api.answering import TIMEOUT_PARAMETER
from service.api.compatible import tei
from service.api.compatible.calls import (
    Call,
    body_schema,
    check_given_once,
    counted,
    read_fields,
    validated,
)
from service.api.compatible.cohere_jina import DocumentOut
from service.api.compatible.dialects import OPENAI, TEI
from service.api.compatible.documents import (
    RerankBody,
    Usage,
    document_texts,
    priority_class,
    ranking,
    usage,
)
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.json_response import json_response
from service.api.schemas import REQUEST_ID_HEADER

RERANK_ROUTE = "/rerank"
TEXT_NAMES = ("texts", "documents")

router = APIRouter(tags=["rerank"])


class DocumentsRerankRequest(RerankBody):
    """A query and documents to rank for it."""

    raw_scores: bool | None = Field(default=None, description="The logit instead of the score.")
    use_activation: bool | None = Field(default=None, description="False is raw_scores.")


DOCUMENTS_FIELDS = DocumentsRerankRequest.model_fields.keys() - tei.TeiRerankRequest.model_fields
"""What a client of text-embeddings-inference never sends."""


class DocumentsRerankResult(BaseModel):
    """One document's place. Infinity has the document as a string, vLLM as an object."""

    index: int
    relevance_score: float
    document: DocumentOut | str | None = None


class DocumentsRerankResponse(BaseModel):
    """Documents in the order of their scores."""

    id: str
    object: Literal["rerank"]
    created: int
    model: str
    results: list[DocumentsRerankResult]
    usage: Usage


@router.post(
    RERANK_ROUTE,
    response_model=list[tei.TeiRank] | DocumentsRerankResponse,
    responses={
        status: {"model": TEI.schema | OPENAI.schema, "description": description}
        for status, description in sorted(
            {
                status: entry["description"]
                for dialect in (OPENAI, TEI)
                for status, entry in dialect.documented_errors().items()
            }.items(),
            key=lambda entry: int(entry[0]),
        )
    },
    openapi_extra={
        "requestBody": body_schema(tei.TeiRerankRequest, DocumentsRerankRequest),
        "parameters": [TIMEOUT_PARAMETER],
    },
)
async def rerank(request: Request) -> Response:
    """Rank texts by their relevance to a query; the field that holds them says whose client asks.

    `texts`: text-embeddings-inference, answered with a bare array. `documents`: Infinity, if
    `return_documents` is given (the documents are strings then), else vLLM, which wants them as
    objects. An error comes in the shape of whose fields there are.
    """
    return await counted(request, RERANK_ROUTE, TEI, _answer)


def _is_for_documents(fields: dict[str, Any]) -> bool:
    """Infinity or vLLM is meant; where the texts are missing the other fields tell."""
    if "texts" in fields or "documents" in fields:
        return "texts" not in fields
    return not DOCUMENTS_FIELDS.isdisjoint(fields)


async def _answer(call: Call) -> Response:
    fields = await read_fields(call)
    if _is_for_documents(fields):
        call.dialect = OPENAI
    check_given_once(fields, TEXT_NAMES)
    if call.dialect is TEI:
        return await tei.answer_rerank(call, fields)
    body = validated(DocumentsRerankRequest, fields)
    texts = document_texts(body.documents)
    asked = Asked([body.query], texts, priority=priority_class(body.priority))
    scored = await score_pairs(call, asked)
    raw = body.raw_scores or body.use_activation is False
    values = scored.margins if raw else scored.scores
    results: list[dict[str, Any]] = []
    for index in ranking(values, body.top_n):
        result: dict[str, Any] = {"index": index, "relevance_score": values[index]}
        if body.return_documents is None:
            result["document"] = {"text": texts[index]}
        elif body.return_documents:
            result["document"] = texts[index]
        results.append(result)
    content = {
        "id": scored.request_id,
        "object": "rerank",
        "created": int(time.time()),
        "model": scored.model["model"]["name"],
        "results": results,
        "usage": usage(scored.computed_tokens),
    }
    return json_response(content, headers={REQUEST_ID_HEADER: scored.request_id})
