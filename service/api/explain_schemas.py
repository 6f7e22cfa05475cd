"""Bodies of `POST /v1/explain`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from service.api.schemas import (
    NOT_BLANK,
    NULL,
    SAYS_SOMETHING,
    AdIn,
    ModelOut,
    RequestId,
    StrictBody,
    TimingOut,
)
from service.domain import MAX_ID_CHARS, PairStatus
from service.pair_seen import Side

MAX_TEXT_CHARS = 8_000
"""Of each text. Every word that is left out makes another text of nearly that length; so all of
them together are about as much to tokenize as one body of a megabyte."""

Text = Annotated[str, Field(max_length=MAX_TEXT_CHARS)]

NotExplained = Literal["not_explained"]
NOT_EXPLAINED: NotExplained = "not_explained"


class ExplainAdIn(AdIn):
    """One ad as in a score request; it needs no id."""

    id: str | None = Field(  # type: ignore[assignment]  # a scored ad must have one
        default=None, max_length=MAX_ID_CHARS, description="Opaque; echoed."
    )
    title: Text | None = Field(default=None, description="With or without a description.")
    description: Text | None = Field(default=None, description="Goes with a title.")
    text: Text | None = Field(
        default=None, description="The ad as shown, in place of title and description."
    )


class ExplainRequest(StrictBody):
    """One query and one ad.

    Unknown fields are errors; an optional field that is null is as if it were absent.
    """

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "query": "best running shoes for marathons",
                    "ad": {"title": "Nike Marathon Elite Shoes - 20% Off"},
                    "timeout_ms": 2000,
                }
            ]
        }
    )

    # The limit before the validator: behind one it is told in "items".
    query: Annotated[Text, SAYS_SOMETHING, Field(json_schema_extra=NOT_BLANK)] = Field(
        description="What the user typed."
    )
    ad: ExplainAdIn = Field(description="The ad.")
    timeout_ms: float | None = Field(
        default=None,
        gt=0,
        description="The answer is made to leave by then, with the words that are ready.",
    )
    request_id: RequestId | None = Field(default=None, description="Echoed; made up when absent.")


class TokenOut(BaseModel):
    """One token that is fed to the model."""

    position: int = Field(description="In the pair, from 0.")
    token: str = Field(description="As the vocabulary spells it.")
    id: int = Field(description="Its number in the vocabulary.")
    segment: int | None = Field(description="Segment id; null where the model is fed none.")
    side: Side = Field(description="Where it comes from; special ones are the model's own.")
    start: int | None = Field(
        description="First character that it stands for, in Unicode code points of its side's "
        "text; null for special tokens."
    )
    end: int | None = Field(description="One past the last.")


class WordOut(BaseModel):
    """One word, and what leaving it out does."""

    text: str = Field(description="As it stands in its side's text.")
    start: int = Field(description="In Unicode code points of the side's text.")
    end: int = Field(description="One past the last.")
    status: PairStatus | NotExplained = Field(
        description="Of the pair without the word, as of a scored ad; not_explained past the limit."
    )
    score_drop: float | None = Field(
        description="The score less the score without the word; above 0 it speaks for relevance."
    )
    logit_drop: float | None = Field(description="Likewise the logit.")


class SideOut(BaseModel):
    """One of the two texts."""

    text: str = Field(description="As the model reads it.")
    cut_text: str = Field(description="The end that did not fit; the score does not depend on it.")
    words: list[WordOut] = Field(description="Those that the model reads, in order.")


def _side_example(word: str, score_drop: float, logit_drop: float) -> dict[str, Any]:
    shown = {"text": word, "start": 0, "end": len(word), "status": "ok"}
    drops = {"score_drop": score_drop, "logit_drop": logit_drop}
    return {"text": word, "cut_text": "", "words": [shown | drops]}


class ExplainResponse(BaseModel):
    """What the model reads of a pair, and which words carry its score."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "request_id": "bac6be2f5fc0c3a2-1",
                    "id": "",
                    "model": {"name": "adrel-minilm-l6", "version": "07a79ee3df85"},
                    "score": 0.8410663532199538,
                    "logit": 2.061251163482666,
                    "query": _side_example("marathons", 0.394, 1.37),
                    "ad": _side_example("Marathon", 0.643, 3.35),
                    "tokens": [
                        {
                            "position": 0,
                            "token": "[CLS]",
                            "id": 101,
                            "segment": 0,
                            "side": "special",
                            "start": NULL,
                            "end": NULL,
                        }
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
    id: str = Field(description="The ad's; empty where it has none.")
    model: ModelOut = Field(description="Which model it was.")
    score: float = Field(ge=0, le=1, description="As /v1/score gives it, to the last bit.")
    logit: float = Field(
        description="The model's output before calibration; log-odds for a head with several."
    )
    query: SideOut = Field(description="The query, and what its words do.")
    ad: SideOut = Field(description="The ad, and what its words do.")
    tokens: list[TokenOut] = Field(description="All that is fed to the model, in order.")
    timing_ms: TimingOut = Field(description="Where the time went, all variants included.")
