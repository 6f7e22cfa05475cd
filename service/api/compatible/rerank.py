"""`POST /rerank` with `documents`: Infinity's and vLLM's; with `texts` it is another server's.

Shapes as of michaelfeil/infinity 0.0.77 and of vLLM 0.13.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.compatible import tei
from service.api.compatible.calls import (
    Call,
    check_given_once,
    counted,
    read_fields,
    validated,
)
from service.api.compatible.dialects import OPENAI, TEI
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
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.compatible.tei_bodies import TeiRank, TeiRerankRequest
from service.api.compatible.vllm_options import check_room
from service.api.json_response import json_response
from service.api.openapi_parts import COMPATIBLE_PARAMETERS, answered, either, request_body

RERANK_ROUTE = "/rerank"
TEXT_NAMES = ("texts", "documents")

router = APIRouter(tags=["rerank"])


class DocumentsRerankRequest(RerankBody):
    """A query and documents to rank for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "best running shoes",
                    "documents": ["Printer Ink Outlet", "Marathon Elite Shoes"],
                    "return_documents": True,
                    "top_n": 1,
                }
            ]
        }
    )


DOCUMENTS_FIELDS = DocumentsRerankRequest.model_fields.keys() - TeiRerankRequest.model_fields
"""What a client of text-embeddings-inference never sends."""


class DocumentsRerankResult(BaseModel):
    """One document's place. Infinity has the document as a string, vLLM as an object."""

    index: int = Field(ge=0, description="In the request.")
    relevance_score: float = Field(
        description="Calibrated, in 0-1; the logit where that was asked for."
    )
    document: DocumentOut | str | None = Field(
        default=None, description="Absent where return_documents is false."
    )


class DocumentsRerankResponse(BaseModel):
    """Documents in the order of their scores."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "bac6be2f5fc0c3a2-1",
                    "object": "rerank",
                    "created": 1796040000,
                    "model": "adrel-minilm-l6",
                    "results": [
                        {
                            "index": 1,
                            "relevance_score": 0.8410663532199538,
                            "document": "Marathon Elite Shoes",
                        }
                    ],
                    "usage": {"prompt_tokens": 21, "total_tokens": 21},
                }
            ]
        }
    )

    id: str = Field(description="The request's id, also in X-Request-Id.")
    object: Literal["rerank"] = Field(description="What this is.")
    created: int = Field(description="Seconds since 1970.")
    model: str = Field(description="Name of the model that gave the scores.")
    results: list[DocumentsRerankResult] = Field(description="Best first.")
    usage: Usage = Field(description="What was computed for it.")


@router.post(
    RERANK_ROUTE,
    summary="Rank texts or documents",
    response_model=list[TeiRank] | DocumentsRerankResponse,
    responses={
        **answered(
            "Best first. The timing headers are there where `texts` were given.",
            tei.TIMING_HEADERS,
        ),
        **either(OPENAI.documented_errors(), TEI.documented_errors()),
    },
    openapi_extra={
        "requestBody": request_body(TeiRerankRequest, DocumentsRerankRequest),
        "parameters": COMPATIBLE_PARAMETERS,
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
    given = [name for name in TEXT_NAMES if fields.get(name) is not None]
    if given:
        return "texts" not in given
    return not DOCUMENTS_FIELDS.isdisjoint(fields)


async def _answer(call: Call) -> Response:
    fields = await read_fields(call)
    if _is_for_documents(fields):
        call.dialect = OPENAI
    check_given_once(fields, TEXT_NAMES)
    if call.dialect is TEI:
        return await tei.answer_rerank(call, fields)
    body = validated(DocumentsRerankRequest, fields)
    check_room(call, body)
    texts = document_texts(body.documents)
    asked = Asked([body.query], texts, priority=priority_class(body.priority))
    scored = await score_pairs(call, asked)
    values = scored.margins if body.wants_logits else scored.scores
    results: list[dict[str, Any]] = []
    for index in ranking(values, body.top_n):
        result: dict[str, Any] = {"index": index, "relevance_score": values[index]}
        if body.return_documents is None:
            result["document"] = document_out(body.documents[index])
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
    return json_response(content, headers=scored.headers)
