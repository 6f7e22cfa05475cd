"""The bodies of vLLM's scores, in all the spellings of a request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field, WithJsonSchema

from service.api.compatible.documents import Usage
from service.api.compatible.vllm_options import VllmOptions

_STRINGS = {
    "type": "array",
    "items": {"type": "string"},
    "minItems": 1,
    "maxItems": "{max_ads_per_request}",
}


def _as_list(side: object) -> object:
    return [side] if isinstance(side, str) else side


Texts = Annotated[
    list[str],
    FailFast(),
    BeforeValidator(_as_list),
    WithJsonSchema({"anyOf": [{"type": "string"}, _STRINGS]}),
    Field(description="One text or many."),
]


def _example(left: str, right: str) -> ConfigDict:
    texts = ["Marathon Elite Shoes", "Printer Ink Outlet"]
    example: dict[str, Any] = {"model": "any", left: "best running shoes", right: texts}
    return ConfigDict(json_schema_extra={"examples": [example]})


class VllmScoreTexts(VllmOptions):
    """Two sides: 1 and 1, 1 and n, or n and n."""

    model_config = _example("text_1", "text_2")

    text_1: Texts
    text_2: Texts


class VllmScoreData(VllmOptions):
    """Likewise, by other names."""

    model_config = _example("data_1", "data_2")

    data_1: Texts
    data_2: Texts


class VllmScoreDocuments(VllmOptions):
    """Likewise, by other names."""

    model_config = _example("queries", "documents")

    queries: Texts
    documents: Texts


class VllmScoreItems(VllmOptions):
    """Likewise, by other names."""

    model_config = _example("queries", "items")

    queries: Texts
    items: Texts


SPELLINGS: tuple[tuple[type[VllmOptions], str, str], ...] = (
    (VllmScoreTexts, "text_1", "text_2"),
    (VllmScoreData, "data_1", "data_2"),
    (VllmScoreDocuments, "queries", "documents"),
    (VllmScoreItems, "queries", "items"),
)
"""Told apart by the names of their two sides."""

SCORE_BODIES = tuple(body for body, _, _ in SPELLINGS)


class VllmScore(BaseModel):
    """One pair's score."""

    index: int = Field(ge=0, description="Of the pair.")
    object: Literal["score"] = Field(description="What this is.")
    score: float = Field(description="Calibrated, in 0-1; the logit where that was asked for.")


class VllmUsage(Usage):
    """Likewise, with what scoring never has."""

    completion_tokens: int = Field(description="Always 0.")


class VllmScoreResponse(BaseModel):
    """The scores, in the order of the pairs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "bac6be2f5fc0c3a2-1",
                    "object": "list",
                    "created": 1796040000,
                    "model": "adrel-minilm-l6",
                    "data": [
                        {"index": 0, "object": "score", "score": 0.8410663532199538},
                        {"index": 1, "object": "score", "score": 0.0037639713142615873},
                    ],
                    "usage": {"prompt_tokens": 21, "total_tokens": 21, "completion_tokens": 0},
                }
            ]
        }
    )

    id: str = Field(description="The request's id, also in X-Request-Id.")
    object: Literal["list"] = Field(description="What this is.")
    created: int = Field(description="Seconds since 1970.")
    model: str = Field(description="Name of the model that gave the scores.")
    data: list[VllmScore] = Field(description="One for each pair.")
    usage: VllmUsage = Field(description="What was computed for it.")
