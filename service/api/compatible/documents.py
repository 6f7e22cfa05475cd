"""Documents as rerank clients send them, and the ranking that they get back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, WithJsonSchema

from service.api.answering import invalid
from service.api.compatible.calls import LenientBody
from service.domain import Priority

Documents = Annotated[
    list[Any],
    WithJsonSchema(
        {
            "type": "array",
            "minItems": 1,
            "maxItems": "{max_ads_per_request}",
            "items": {
                "anyOf": [
                    {"type": "string"},
                    {
                        "type": "object",
                        "properties": {"text": {"type": "string", "description": "What is read."}},
                        "additionalProperties": True,
                    },
                ]
            },
        }
    ),
    Field(description="Strings, or objects with a `text`; empty ones are scored too."),
]

ModelName = Annotated[
    str | None,
    Field(default=None, min_length=1, description="Any name: there is one model, and it answers."),
]

TopN = Annotated[
    int | None,
    Field(default=None, ge=0, description="Only so many of the best; 0 or null for all."),
]


class RerankBody(LenientBody):
    """What all requests with documents have."""

    model: ModelName = None
    query: str = Field(description="What the user typed; not only white space.")
    documents: Documents
    top_n: TopN = None
    return_documents: bool | None = Field(
        default=None, description="Whether documents are in the answer; see the route."
    )
    priority: int | None = Field(default=None, description="Over 0 is bulk work.")


class Usage(BaseModel):
    """Tokens of the pairs that were computed for this request; pairs from the cache cost none."""

    prompt_tokens: int = Field(description="Special tokens included.")
    total_tokens: int = Field(description="The same.")


def usage(computed_tokens: int) -> dict[str, int]:
    """As `Usage`."""
    return {"prompt_tokens": computed_tokens, "total_tokens": computed_tokens}


def priority_class(level: int | None, most_urgent: int = 0) -> Priority:
    """Our class for a number of which lower is more urgent.

    Args:
        level: None where none was given.
        most_urgent: Up to here it is an auction, beyond it bulk work.
    """
    return Priority.AUCTION if level is None or level <= most_urgent else Priority.BATCH


def document_texts(documents: Sequence[Any], rank_fields: Sequence[str] = ()) -> list[str]:
    """Each document as one text.

    Args:
        documents: Strings or objects.
        rank_fields: Of an object these, in order and joined by a space; none means `text`.

    Raises:
        InvalidRequest: A document is neither, or has no such field; names it.
    """
    return [
        document if isinstance(document, str) else _text_of(document, rank_fields, number)
        for number, document in enumerate(documents)
    ]


def _text_of(document: object, rank_fields: Sequence[str], number: int) -> str:
    if not isinstance(document, dict):
        raise invalid(f"documents[{number}]", "must be a string or an object with a text")
    values = [document.get(name) for name in rank_fields or ("text",)]
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) < len(values):
        wanted = " and ".join(rank_fields) if rank_fields else "text"
        raise invalid(f"documents[{number}]", f"must have {wanted}, as a string")
    return " ".join(texts)


def ranking(values: Sequence[float], top_n: int | None = None) -> list[int]:
    """Indices from the highest value down; equal ones keep their order.

    Args:
        values: One each.
        top_n: At most so many; None or 0 for all.
    """
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    return order[: top_n or None]
