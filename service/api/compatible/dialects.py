"""The errors of other protocols: statuses and bodies as their clients parse them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fastapi import Request, Response
from pydantic import BaseModel, Field

from service.api.error_examples import ERROR_EXAMPLES, PROBE_EXAMPLES
from service.api.error_handlers import ADMIN_STATUS_OF, STATUS_OF, error_headers
from service.api.json_response import json_response
from service.api.openapi_parts import Responses, error_responses
from service.errors import (
    BodyTooLarge,
    InferenceFailed,
    InvalidRequest,
    NotReady,
    RequestTimeout,
    ServiceError,
    TooManyAds,
    Unauthorized,
    UnsupportedMediaType,
)


class NothingToScore(InvalidRequest):
    """A request without a single pair."""

    def __init__(self, name: str) -> None:
        problem = "must not be empty"
        super().__init__(f"{name}: {problem}", [{"field": name, "problem": problem}])


class TextTooLong(InvalidRequest):
    """A text does not fit the model and the caller forbids to cut it."""


class UnknownModel(InvalidRequest):
    """The path names a model or a version that does not serve here."""


_EXAMPLES: tuple[ServiceError, ...] = (
    NothingToScore("documents"),
    TextTooLong("texts[1]: does not fit the model with its query, and truncate is false"),
    UnknownModel("unknown model 'other'; 'adrel-minilm-l6' serves here"),
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one family of clients wants its errors.

    Attributes:
        body: Of the answer, from its status and the error.
        schema: Of that body.
        statuses: Where they differ from ours; they hold for an error's subclasses too.
    """

    body: Callable[[int, ServiceError], dict[str, Any]]
    schema: type[BaseModel]
    statuses: Mapping[type[ServiceError], int] = field(default_factory=dict)

    def status(self, error: type[ServiceError]) -> int:
        """The nearest of the error's classes that has a status here decides, else ours."""
        table = {**STATUS_OF, **ADMIN_STATUS_OF, **self.statuses}
        return next(table[cls] for cls in error.__mro__ if cls in table)

    def error_response(self, request: Request, error: ServiceError) -> Response:
        """The answer for an error, with our headers."""
        status = self.status(type(error))
        return json_response(self.body(status, error), status, error_headers(request, error))

    def documented_errors(self, *errors: type[ServiceError]) -> Responses:
        """OpenAPI `responses=` from the tables that decide.

        Args:
            errors: That the route can answer; none means all of a route that scores.
        """
        examples = [
            example
            for example in (*ERROR_EXAMPLES, *_EXAMPLES, *PROBE_EXAMPLES)
            if (type(example) in errors if errors else self._is_told(type(example)))
        ]
        statuses = [self.status(type(example)) for example in examples]
        return error_responses(
            self.schema,
            (
                (type(example), status, self.body(status, example))
                for example, status in zip(examples, statuses, strict=True)
            ),
        )

    def _is_told(self, error: type[ServiceError]) -> bool:
        return error in STATUS_OF or error in self.statuses or error is NothingToScore


class TeiError(BaseModel):
    """The body of an error as text-embeddings-inference gives it."""

    error: str = Field(description="What went wrong, with the field and the limit.")
    error_type: Literal["Unhealthy", "Backend", "Overloaded", "Validation", "Empty"] = Field(
        description="Whose turn it is: Overloaded and Unhealthy mean come back later."
    )


_FAULTS_OF_THE_CALLER = (
    InvalidRequest,
    TooManyAds,
    BodyTooLarge,
    RequestTimeout,
    Unauthorized,
    UnsupportedMediaType,
)


def _tei_body(_: int, error: ServiceError) -> dict[str, Any]:
    kind = "Overloaded"  # refused at the door, or its time ran out: both mean come back later
    if isinstance(error, NothingToScore):
        kind = "Empty"
    elif isinstance(error, _FAULTS_OF_THE_CALLER):
        kind = "Validation"
    elif isinstance(error, NotReady):
        kind = "Unhealthy"
    elif isinstance(error, InferenceFailed) or type(error) is ServiceError:
        kind = "Backend"
    return {"error": error.message, "error_type": kind}


class OpenAiErrorBody(BaseModel):
    """What went wrong."""

    message: str = Field(description="What went wrong, with the field and the limit.")
    type: str = Field(description="Our code for the error, as in POST /v1/score.")
    param: str | None = Field(description="The first faulty field, where there is one.")
    code: int = Field(description="The HTTP status.")


class OpenAiError(BaseModel):
    """The body of an error as vLLM and Infinity give it, after OpenAI."""

    error: OpenAiErrorBody = Field(description="The error.")


def _openai_body(status: int, error: ServiceError) -> dict[str, Any]:
    param = next((detail["field"] for detail in error.details if "field" in detail), None)
    return {"error": {"message": error.message, "type": error.code, "param": param, "code": status}}


class CohereJinaError(OpenAiError):
    """The body of an error: Cohere's clients read `message`, Jina's `detail`, vLLM's `error`."""

    message: str = Field(description="What went wrong, with the field and the limit.")
    detail: str = Field(description="The same.")


def _cohere_jina_body(status: int, error: ServiceError) -> dict[str, Any]:
    own = {"message": error.message, "detail": error.message}
    return own | _openai_body(status, error)


class OpenInferenceError(BaseModel):
    """The body of an error in the Open Inference Protocol."""

    error: str = Field(description="What went wrong, with the field and the limit.")


def _open_inference_body(_: int, error: ServiceError) -> dict[str, Any]:
    return {"error": error.message}


TEI = Dialect(
    _tei_body,
    TeiError,
    {TooManyAds: 413, TextTooLong: 413, NothingToScore: 400, InferenceFailed: 424},
)
OPENAI = Dialect(_openai_body, OpenAiError, {InvalidRequest: 400, TooManyAds: 400})
COHERE_JINA = Dialect(_cohere_jina_body, CohereJinaError, {InvalidRequest: 400, TooManyAds: 400})
OPEN_INFERENCE = Dialect(
    _open_inference_body,
    OpenInferenceError,
    {InvalidRequest: 400, TooManyAds: 400, UnknownModel: 404},
)
