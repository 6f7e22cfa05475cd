"""The native API's bodies. Strict: a field of the wrong type or of an unknown name is an error."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    StringConstraints,
    model_validator,
)

from service.domain import Ad, PairStatus, Priority, ScoreQuery

MAX_ID_CHARS = 256

# Printable ASCII: the request id goes into a header and into logs.
REQUEST_ID_PATTERN = r"^[\x21-\x7e]{1,128}$"
REQUEST_ID_HEADER = "X-Request-Id"
RequestId = Annotated[str, StringConstraints(pattern=REQUEST_ID_PATTERN)]


def is_request_id(text: str) -> bool:
    """Whether a text from a header may be echoed and logged as a request id."""
    return re.fullmatch(REQUEST_ID_PATTERN, text) is not None


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty or only white space")
    return text


QueryText = Annotated[str, AfterValidator(_not_blank)]


class StrictBody(BaseModel):
    """A body whose every field must be known and of the right type."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class AdIn(StrictBody):
    """One ad: `text` as shown, or a `title` with or without a `description`."""

    id: str = Field(min_length=1, max_length=MAX_ID_CHARS, description="Opaque; echoed.")
    title: str = ""
    description: str = ""
    text: str = ""

    @model_validator(mode="after")
    def _says_something_once(self) -> Self:
        shown = self.title.strip() or self.description.strip()
        if self.text.strip():
            if shown:
                raise ValueError("give either text, or title and description, not both")
        elif not self.title.strip():
            raise ValueError("an ad needs a title or a text that is not empty")
        return self

    def to_domain(self) -> Ad:
        """The ad in the product's own terms."""
        return Ad(self.id, self.title, self.description, self.text)


class ScoreRequest(StrictBody):
    """One query and the ads to score against it."""

    query: QueryText = Field(description="What the user typed.")
    # The first faulty ad ends the check: a body can hold half a million of them.
    ads: Annotated[list[AdIn], FailFast()] = Field(
        min_length=1, description="The answer keeps their order."
    )
    timeout_ms: float | None = Field(
        default=None, gt=0, description="The answer leaves by then, with the scores that are ready."
    )
    priority: Literal["auction", "batch"] = "auction"
    min_score: float | None = Field(
        default=None, ge=0, le=1, description="Scores at or above it are marked eligible."
    )
    request_id: RequestId | None = Field(default=None, description="Echoed; made up when absent.")

    def to_domain(self, request_id: str, timeout_s: float) -> ScoreQuery:
        """The request in the product's own terms."""
        return ScoreQuery(
            request_id=request_id,
            query=self.query,
            ads=tuple(ad.to_domain() for ad in self.ads),
            timeout_s=timeout_s,
            priority=Priority[self.priority.upper()],
            min_score=self.min_score,
        )


class ModelOut(BaseModel):
    """The model that gave the scores."""

    name: str
    version: str


class AdScoreOut(BaseModel):
    """One ad's outcome. `score` is null unless the status is ok or cached."""

    id: str
    score: float | None = Field(ge=0, le=1)
    status: PairStatus
    eligible: bool | None = Field(default=None, description="Only where min_score was given.")
    truncated: bool = Field(default=False, description="Only where some of the text did not fit.")


class TimingOut(BaseModel):
    """Milliseconds on this server."""

    encode: float
    queue: float
    inference: float
    total: float


class ScoreResponse(BaseModel):
    """The scores, in the order of the ads."""

    request_id: str
    model: ModelOut
    scores: list[AdScoreOut]
    timing_ms: TimingOut


class ErrorOut(BaseModel):
    """What went wrong: a stable code, a sentence, and facts for programs."""

    code: str
    message: str
    details: list[dict[str, Any]]


class ErrorResponse(BaseModel):
    """The body of every error."""

    error: ErrorOut
