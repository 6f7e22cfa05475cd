"""What a call returns."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from service.client.errors import AdrelError


class AdStatus(enum.StrEnum):
    """Where an ad's score is from (`OK`, `CACHED`, `FALLBACK`), or why it has none."""

    OK = "ok"
    CACHED = "cached"
    DEADLINE = "deadline"
    FAILED = "failed"
    FALLBACK = "fallback"


FROM_THE_MODEL = (AdStatus.OK, AdStatus.CACHED)


@dataclass(frozen=True, slots=True)
class AdResult:
    """One ad's outcome.

    Attributes:
        id: As the caller gave it.
        score: Probability in 0-1 that the ad is relevant; None where there is none.
        status: Where the score is from, or why there is none.
        eligible: Whether the score is at least `min_score`; None where that or the score is absent.
        truncated: Some of the text did not fit the model.
    """

    id: str
    score: float | None
    status: AdStatus
    eligible: bool | None = None
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The model that gave the scores."""

    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds at the service."""

    encode_ms: float
    queue_ms: float
    inference_ms: float
    total_ms: float


@dataclass(frozen=True, slots=True)
class ScoreResult:
    """The outcome of a call: one `AdResult` per ad, in the order asked.

    Attributes:
        request_id: The caller's, or one that the client made up; also in the service's log.
        scores: One per ad.
        model: None where no answer came.
        timing: At the service; None where no answer came.
        elapsed_ms: By the caller's clock, all attempts together.
        attempts: Requests that were sent or tried.
        error: Why no answer came; only `score_or_fallback` returns such a result.
    """

    request_id: str
    scores: tuple[AdResult, ...]
    model: ModelIdentity | None
    timing: Timing | None
    elapsed_ms: float
    attempts: int
    error: AdrelError | None = None

    @property
    def complete(self) -> bool:
        """Whether every ad has a score of the model."""
        return all(ad.status in FROM_THE_MODEL for ad in self.scores)
