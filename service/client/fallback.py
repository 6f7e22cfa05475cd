"""What an auction gets for an ad that the service did not score."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

from service.client.result import AdResult, AdStatus, ScoreResult
from service.client.wire import Ask
from service.domain import Ad

Fallback: TypeAlias = Callable[[str, Ad], float | None]
"""From the query and an ad to a score in 0-1, or None. Must be quick: time may be over already."""


def with_fallback(result: ScoreResult, ask: Ask, fallback: Fallback) -> ScoreResult:
    """The result with the fallback's scores where it has none of the model.

    An ad for which the fallback returns None keeps its status. What the fallback raises is raised.

    Raises:
        ValueError: The fallback gave a score that is not in 0-1.
    """
    ads = zip(result.scores, ask.ads, strict=True)
    scores = tuple(
        one if one.score is not None else _filled(one, ad, ask, fallback) for one, ad in ads
    )
    return dataclasses.replace(result, scores=scores)


def _filled(empty: AdResult, ad: Ad, ask: Ask, fallback: Fallback) -> AdResult:
    score = fallback(ask.query, ad)
    if score is None:
        return empty
    if not 0 <= score <= 1:
        raise ValueError(f"the fallback's score for ad {ad.id!r} is {score!r}, not in 0-1")
    eligible = None if ask.min_score is None else score >= ask.min_score
    return dataclasses.replace(
        empty, score=float(score), status=AdStatus.FALLBACK, eligible=eligible
    )
