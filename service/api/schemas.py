"""The native API's bodies. Strict: a field of the wrong type or of an unknown name is an error."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    FailFast,
    Field,
    model_validator,
)

from service.domain import (
    MAX_ID_CHARS,
    REQUEST_ID_PATTERN,
    REQUEST_ID_WORDS,
    Ad,
    PairStatus,
    Priority,
    ScoreQuery,
    fault_of_texts,
    is_request_id,
)

NULL = "{null}"
"""A null in an example: the framework drops real ones from the OpenAPI document."""

REQUEST_ID_HEADER = "X-Request-Id"


def _request_id(text: str) -> str:
    if not is_request_id(text):
        raise ValueError(f"must be {REQUEST_ID_WORDS}")
    return text


RequestId = Annotated[
    str, AfterValidator(_request_id), Field(json_schema_extra={"pattern": REQUEST_ID_PATTERN})
]


NOT_BLANK: dict[str, Any] = {"minLength": 1, "pattern": r"\S"}
"""JSON Schema of a text that says something."""


def _not_blank(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty or only white space")
    return text


SAYS_SOMETHING = AfterValidator(_not_blank)
QueryText = Annotated[str, SAYS_SOMETHING, Field(json_schema_extra=NOT_BLANK)]


class StrictBody(BaseModel):
    """A body whose every field must be known and of the right type.

    Every field that may be left out may be null too, and means the same: clients with types send
    null for what they do not have.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class AdIn(StrictBody):
    """One ad: `text` as shown, or a `title` with or without a `description`; not both."""

    # Not `anyOf`, of which generators of clients make a union in place of one type.
    model_config = ConfigDict(
        json_schema_extra={
            "if": {"not": {"required": ["text"]}},
            "then": {"required": ["title"]},
        }
    )

    id: str = Field(
        min_length=1, max_length=MAX_ID_CHARS, description="Opaque; echoed; may repeat."
    )
    title: str | None = Field(default=None, description="As shown.")
    description: str | None = Field(default=None, description="As shown; follows the title.")
    text: str | None = Field(
        default=None, description="All of the ad, in place of title and description."
    )

    @model_validator(mode="after")
    def _says_something_once(self) -> Self:
        fault = fault_of_texts(self.title, self.description, self.text)
        if fault is not None:
            raise ValueError(fault)
        return self

    def to_domain(self) -> Ad:
        """The ad in the product's own terms."""
        return Ad(self.id or "", self.title or "", self.description or "", self.text or "")


class ScoreRequest(StrictBody):
    """One query and the ads to score against it.

    Unknown fields are errors; an optional field that is null is as if it were absent.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "best running shoes for marathons",
                    "ads": [
                        {"id": "A", "title": "Nike Marathon Elite Shoes - 20% Off"},
                        {
                            "id": "B",
                            "title": "Running Gear for Beginners",
                            "description": "Shirts, shorts and socks",
                        },
                        {"id": "C", "text": "Cheap Printer Ink Outlet"},
                    ],
                    "timeout_ms": 250,
                    "min_score": 0.5,
                }
            ]
        }
    )

    query: QueryText = Field(description="What the user typed; not only white space.")
    # The first faulty ad ends the check: a body can hold half a million of them. `faults` finds
    # the others where there are no more ads than a request may carry.
    ads: Annotated[list[AdIn], FailFast()] = Field(
        min_length=1,
        description="The answer keeps their order.",
        json_schema_extra={"maxItems": "{max_ads_per_request}"},
    )
    timeout_ms: float | None = Field(
        default=None,
        gt=0,
        description="The answer is made to leave by then, with the scores that are ready. Counts "
        "from when the headers are read; {default_timeout_ms} where neither this nor the header "
        "is given.",
        json_schema_extra={"maximum": "{max_timeout_ms}"},
    )
    priority: Literal["auction", "batch"] | None = Field(
        default="auction", description="batch is bulk work: served after, and refused before."
    )
    min_score: float | None = Field(
        default=None, ge=0, le=1, description="Scores at or above it are marked eligible."
    )
    request_id: RequestId | None = Field(
        default=None, description="Echoed. Where it is absent the header's, else one is made up."
    )

    @property
    def n_fields(self) -> int:
        """Fields that were given, the ads' own included."""
        # The set behind the property model_fields_set, which takes five times as long.
        return len(self.__pydantic_fields_set__) + sum(
            [len(ad.__pydantic_fields_set__) for ad in self.ads]
        )

    def to_domain(self, request_id: str, timeout_s: float) -> ScoreQuery:
        """The request in the product's own terms."""
        return ScoreQuery(
            request_id=request_id,
            query=self.query,
            ads=tuple(ad.to_domain() for ad in self.ads),
            timeout_s=timeout_s,
            priority=Priority.BATCH if self.priority == "batch" else Priority.AUCTION,
            min_score=self.min_score,
        )


class ModelOut(BaseModel):
    """The model that gave the scores."""

    name: str = Field(description="As the bundle has it.")
    version: str = Field(description="Derived from the content: equal ones give equal scores.")


class AdScoreOut(BaseModel):
    """One ad's outcome. `score` is null unless the status is ok or cached."""

    id: str = Field(description="The ad's.")
    score: float | None = Field(ge=0, le=1, description="Calibrated probability of relevance.")
    status: PairStatus = Field(
        description="ok: computed now; cached: computed before; deadline: not scored in time; "
        "failed: the model failed on it."
    )
    eligible: bool | None = Field(
        default=None, description="score >= min_score; only where that was given."
    )
    truncated: bool = Field(default=False, description="Only where some of the text did not fit.")


class TimingOut(BaseModel):
    """Milliseconds on this server."""

    encode: float = Field(description="From the headers to the queue.")
    queue: float = Field(description="Until the first batch with one of its pairs started.")
    inference: float = Field(description="Until the last pair was settled.")
    total: float = Field(description="All of it.")


class ScoreResponse(BaseModel):
    """The scores, in the order of the ads."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "request_id": "bac6be2f5fc0c3a2-1",
                    "model": {"name": "adrel-minilm-l6", "version": "07a79ee3df85"},
                    "scores": [
                        {"id": "A", "score": 0.8410663532199538, "status": "ok", "eligible": True},
                        {
                            "id": "B",
                            "score": 0.41063805356004834,
                            "status": "ok",
                            "eligible": False,
                        },
                        {"id": "C", "score": NULL, "status": "deadline"},
                    ],
                    "timing_ms": {
                        "encode": 3.251,
                        "queue": 0.624,
                        "inference": 14.433,
                        "total": 18.307,
                    },
                }
            ]
        }
    )

    request_id: str = Field(description="The request's id, also in X-Request-Id.")
    model: ModelOut = Field(description="Which model it was.")
    scores: list[AdScoreOut] = Field(description="One for each ad.")
    timing_ms: TimingOut = Field(description="Where the time went.")


class ErrorOut(BaseModel):
    """What went wrong: a stable code, a sentence, and facts for programs."""

    code: str = Field(description="Stable, for programs; also the metric label `outcome`.")
    message: str = Field(description="For people: the field, what is wrong, the limit.")
    details: list[dict[str, Any]] = Field(
        description="One entry for each faulty field, or the figures behind a refusal."
    )


class ErrorResponse(BaseModel):
    """The body of every error."""

    error: ErrorOut = Field(description="The error.")
