"""What an auction gets for an ad that the service did not score."""

from __future__ import annotations

import dataclasses
import inspect
import logging
from collections.abc import Callable
from typing import TypeAlias, cast

from service.client.arguments import described, number
from service.client.ask import Ask
from service.client.result import AdResult, AdStatus, ScoreResult
from service.domain import Ad

logger = logging.getLogger(__name__)

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

    An ad for which the fallback returns None keeps its status and has no score. So does one for
    which it raises or gives something that is no number in 0-1, since an error would cost all other
    ads theirs; the log tells of it, once a call.
    """
    scores, failed = [], []
    for one, ad in zip(result.scores, ask.ads, strict=True):
        filled = one
        if one.score is None:
            try:
                filled = _filled(one, fallback(ask.query, ad), ask.min_score)
            except Exception as error:  # the caller's own function: any
                failed.append(error)
        scores.append(filled)
    if failed:
        logger.error("the fallback failed for %d ads, first:", len(failed), exc_info=failed[0])
    return dataclasses.replace(result, scores=tuple(scores))


def _filled(empty: AdResult, given: float | None, min_score: float | None) -> AdResult:
    if given is None:
        return empty
    score = number(f"the fallback's score for ad {empty.id!r}", given, 0, 1)
    eligible = None if min_score is None else score >= min_score
    return dataclasses.replace(empty, score=score, status=AdStatus.FALLBACK, eligible=eligible)
