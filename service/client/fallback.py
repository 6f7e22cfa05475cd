"""What an auction gets for an ad that the service did not score."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import TypeAlias, cast

from service.client.arguments import described, number
from service.client.ask import Ask
from service.client.result import AdResult, AdStatus, ScoreResult
from service.domain import Ad

Fallback: TypeAlias = Callable[[str, Ad], float | None]
"""From the query and an ad to a score in 0-1, or None. Must be quick: time may be over already."""


def checked_fallback(fallback: object) -> Fallback:
    """The function that will be asked.

    Raises:
        TypeError: It cannot be called, or must be awaited.
    """
    if not callable(fallback) or inspect.iscoroutinefunction(fallback):
        raise TypeError(
            "fallback: takes a plain function of the query and an Ad that returns a score or None, "
            f"got {described(fallback)}"
        )
    return cast("Fallback", fallback)


def with_fallback(result: ScoreResult, ask: Ask, fallback: Fallback) -> ScoreResult:
    """The result with the fallback's scores where it has none of the model.

    An ad for which the fallback returns None keeps its status. What the fallback raises is raised.

    Raises:
        TypeError: The fallback gave something that is no number.
        ValueError: The fallback gave a score that is not in 0-1.
    """
    ads = zip(result.scores, ask.ads, strict=True)
    scores = tuple(
        one if one.score is not None else _filled(one, ad, ask, fallback) for one, ad in ads
    )
    return dataclasses.replace(result, scores=scores)


def _filled(empty: AdResult, ad: Ad, ask: Ask, fallback: Fallback) -> AdResult:
    given = fallback(ask.query, ad)
    if given is None:
        return empty
    score = number(f"the fallback's score for ad {ad.id!r}", given, 0, 1)
    eligible = None if ask.min_score is None else score >= ask.min_score
    return dataclasses.replace(empty, score=score, status=AdStatus.FALLBACK, eligible=eligible)
