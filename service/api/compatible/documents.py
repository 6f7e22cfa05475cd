"""Documents as rerank clients send them, and the ranking that they get back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from pydantic_core import to_json

from service.api.answering import invalid
from service.api.compatible.vllm_options import VllmOptions
from service.api.schemas import NOT_BLANK
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

TopN = Annotated[
    int | None,
    Field(default=None, ge=0, description="Only so many of the best; 0 or null for all."),
]


class RerankBody(VllmOptions):
    """What all requests with documents have; vLLM speaks on each of their routes."""

    query: str = Field(
        description="What the user typed; not only white space.", json_schema_extra=NOT_BLANK
    )
    documents: Documents
    top_n: TopN = None
    return_documents: bool | None = Field(
        default=None, description="Whether documents are in the answer; see the route."
    )
    raw_scores: bool | None = Field(default=None, description="True: the logit, as for Infinity.")

    @property
    def wants_logits(self) -> bool:
        """The numbers before calibration are asked for."""
        return self.raw_scores is True or super().wants_logits


class DocumentOut(BaseModel):
    """A document as it was sent, all its fields included; one that was a string as its text."""

    model_config = ConfigDict(extra="allow")

    text: str | float | None = Field(default=None, description="Of a string; else as it was sent.")


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
        rank_fields: Of an object those of these that it has, in order and joined by a space; none
            means `text`. Numbers are read as JSON writes them.

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
    readable = [value for value in values if _is_readable(value)]
    if not readable:
        wanted = " or ".join(rank_fields) if rank_fields else "text"
        raise invalid(f"documents[{number}]", f"must have {wanted}, as a string or a number")
    return " ".join(map(str, readable))


def _is_readable(value: object) -> bool:
    return isinstance(value, (str, int, float)) and not isinstance(value, bool)


def document_out(document: str | dict[str, Any]) -> object:
    """As `DocumentOut`, for the encoder of the answer."""
    if isinstance(document, str):
        return {"text": document}
    # As JSON already: numbers may be longer than the encoder of the answer takes.
    return orjson.Fragment(to_json(document, inf_nan_mode="null"))


def ranking(values: Sequence[float], top_n: int | None = None) -> list[int]:
    """Indices from the highest value down; equal ones keep their order.

    Args:
        values: One each.
        top_n: At most so many; None or 0 for all.
    """
    order = sorted(range(len(values)), key=values.__getitem__, reverse=True)
    return order[: top_n or None]
