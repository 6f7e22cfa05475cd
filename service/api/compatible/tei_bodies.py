"""The bodies of text-embeddings-inference: of requests, of answers, and of what it tells."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field, WithJsonSchema

from service.api.compatible.calls import LenientBody
from service.api.schemas import NOT_BLANK, NULL

LABEL = "relevant"
NO_SUCH_LIMIT = 2**31 - 1

_PAIR = {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}
_PAIRS = {"type": "array", "items": _PAIR, "minItems": 1, "maxItems": "{max_ads_per_request}"}


# As an enumeration its two spellings would get one name in clients that are generated.
_RIGHT = {"anyOf": [{"type": "string", "pattern": "^[Rr]ight$"}, {"type": "null"}]}


class TeiOptions(LenientBody):
    """What both requests may ask for."""

    truncate: bool | None = Field(
        default=None, description="False: refuse a text that does not fit. Else its end is cut."
    )
    truncation_direction: Annotated[Literal["Right", "right"] | None, WithJsonSchema(_RIGHT)] = (
        Field(default=None, description="Texts are cut on the right alone.")
    )
    raw_scores: bool | None = Field(default=None, description="The logit instead of the score.")


class TeiRerankRequest(TeiOptions):
    """A query and the texts to rank for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "best running shoes",
                    "texts": ["Printer Ink Outlet", "Marathon Elite Shoes"],
                    "return_text": True,
                }
            ]
        }
    )

    query: str = Field(
        description="What the user typed; not only white space.", json_schema_extra=NOT_BLANK
    )
    texts: Annotated[list[str], FailFast()] = Field(
        description="Of the ads; empty ones are scored too.",
        json_schema_extra={"minItems": 1, "maxItems": "{max_ads_per_request}"},
    )
    return_text: bool | None = Field(default=None, description="The texts are in the answer.")


class TeiRank(BaseModel):
    """One text's place; the answer is an array of them, best first."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"index": 1, "score": 0.8410663532199538, "text": "Marathon Elite Shoes"}]
        }
    )

    index: int = Field(ge=0, description="In the request.")
    score: float = Field(description="Calibrated, in 0-1; the logit where that was asked for.")
    text: str | None = Field(default=None, description="Only where return_text was true.")


class TeiPredictRequest(TeiOptions):
    """One pair `[query, ad]`, or an array of pairs."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"inputs": ["best running shoes", "Marathon Elite Shoes"]},
                {
                    "inputs": [
                        ["best running shoes", "Marathon Elite Shoes"],
                        ["printer ink", "Printer Ink Outlet"],
                    ]
                },
            ]
        }
    )

    inputs: Annotated[list[Any], WithJsonSchema({"anyOf": [_PAIR, _PAIRS]})] = Field(
        description="Each query and ad text."
    )


class TeiPrediction(BaseModel):
    """The score of a pair; the only label is `relevant`."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"score": 0.8410663532199538, "label": LABEL}]}
    )

    score: float = Field(description="Calibrated, in 0-1; the logit where that was asked for.")
    label: str = Field(description="Always `relevant`.")


class TeiHealth(BaseModel):
    """Scores can be served. Infinity's clients read this, text-embeddings-inference's do not."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"unix": 1796040000.25}]})

    unix: float = Field(description="Seconds since 1970.")


class TeiModelType(BaseModel):
    """What kind of model serves."""

    reranker: dict[str, dict[str, Any]] = Field(description="Names of its one class.")


class TeiInfo(BaseModel):
    """The model and the limits, in text-embeddings-inference's words."""

    model_config = ConfigDict(
        protected_namespaces=(),
        json_schema_extra={
            "examples": [
                {
                    "model_id": "adrel-minilm-l6",
                    "model_sha": "07a79ee3df85",
                    "model_dtype": "int8",
                    "model_type": {"reranker": {"id2label": {"0": LABEL}, "label2id": {LABEL: 0}}},
                    "max_concurrent_requests": NO_SUCH_LIMIT,
                    "max_input_length": 64,
                    "max_batch_tokens": 512,
                    "max_batch_requests": 32,
                    "max_client_batch_size": 1000,
                    "auto_truncate": True,
                    "tokenization_workers": 1,
                    "version": "0.1.0",
                    "sha": NULL,
                    "docker_label": NULL,
                }
            ]
        },
    )

    model_id: str = Field(description="Name of the model.")
    model_sha: str = Field(description="Its version.")
    model_dtype: str = Field(description="Number format of its weights.")
    model_type: TeiModelType = Field(description="What kind it is.")
    max_concurrent_requests: int = Field(description="No limit of this kind: time is the limit.")
    max_input_length: int = Field(description="Longest pair, in tokens.")
    max_batch_tokens: int = Field(description="Most padded tokens in a batch.")
    max_batch_requests: int = Field(description="Most pairs in a batch.")
    max_client_batch_size: int = Field(description="Texts that one request may carry.")
    auto_truncate: bool = Field(description="Always true: texts that do not fit are cut.")
    tokenization_workers: int = Field(description="Threads for long texts.")
    version: str = Field(description="Release of adrel.")
    sha: None = Field(description="Not known.")
    docker_label: None = Field(description="Not known.")
