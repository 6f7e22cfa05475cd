"""A request between its text and its answer: what was known of its pairs, and what came of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.batching.pair_job import Logits, PendingRequest
from service.domain import AdScore, PairStatus, ScoreAnswer, ScoreQuery, StageTimes
from service.errors import CUT_OFF, DeadlineExceeded, InferenceFailed, NotReady

SCORED = (PairStatus.OK, PairStatus.CACHED)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """A request after a look into the cache.

    Attributes:
        query: As asked.
        texts: Each ad as the model reads it.
        keys: Each pair's key in the cache.
        pending: What is known of the pairs.
        truncated: Per pair, known for those that have a score.
        missing: Indices of the pairs that must be computed.
        accepted_s: When the request came.
    """

    query: ScoreQuery
    texts: list[str]
    keys: list[bytes]
    pending: PendingRequest
    truncated: list[bool]
    missing: list[int]
    accepted_s: float

    @property
    def computed_tokens(self) -> int:
        """Tokens of the pairs that were computed for it, special ones included."""
        return sum(job.encoded.length_tokens for job in self.pending.jobs)


@dataclass(frozen=True, slots=True)
class PairDetails:
    """What some protocols tell of a request besides its scores.

    Attributes:
        margins: (n,) log-odds before calibration; a row means something where there is a score.
        computed_tokens: Of the pairs that were computed, special tokens included. A pair that
            stands in the request twice counts once, one from the cache counts nothing.
    """

    margins: NDArray[np.float64]
    computed_tokens: int


def answer_of(
    prepared: Prepared,
    to_scores: Callable[[Logits], NDArray[np.float64]],
    ended_s: float,
    encoded_s: float | None,
) -> ScoreAnswer:
    """The answer from what is known.

    Args:
        prepared: The request.
        to_scores: Logits, one row a pair, to scores in 0-1.
        ended_s: Now.
        encoded_s: When its pairs were ready for the queue; None where all were cached.

    Returns:
        One score per ad, in order. Ads without one say why in their status.

    Raises:
        NotReady: The service stopped before any ad had a score.
        DeadlineExceeded: Time ran out before any ad had a score.
        InferenceFailed: The model failed on every ad.
    """
    query, pending = prepared.query, prepared.pending
    known = [i for i, status in enumerate(pending.statuses) if status in SCORED]
    if not known:
        raise _nothing_scored(query, pending)
    scores: list[float | None] = [None] * len(query.ads)
    for index, value in zip(known, to_scores(pending.logits[known]).tolist(), strict=True):
        scores[index] = value
    least = query.min_score
    eligible: list[bool | None] = [None] * len(query.ads)
    if least is not None:
        eligible = [None if score is None else score >= least for score in scores]
    ids = [ad.id for ad in query.ads]
    columns = zip(ids, scores, pending.statuses, prepared.truncated, eligible, strict=True)
    ads = tuple([AdScore(*of_one_ad) for of_one_ad in columns])
    encoded_s = encoded_s or ended_s
    started_s = pending.started_s or (encoded_s if prepared.missing else ended_s)
    times = StageTimes(
        encode_s=encoded_s - prepared.accepted_s,
        queue_s=max(0.0, started_s - encoded_s),
        inference_s=ended_s - max(started_s, encoded_s),
        total_s=ended_s - prepared.accepted_s,
    )
    return ScoreAnswer(query.request_id, ads, times, pending.was_cut_off)


def _nothing_scored(
    query: ScoreQuery, pending: PendingRequest
) -> DeadlineExceeded | InferenceFailed | NotReady:
    if pending.was_cut_off:
        return NotReady(CUT_OFF)
    if all(status is PairStatus.FAILED for status in pending.statuses):
        return InferenceFailed()
    return DeadlineExceeded(query.timeout_s, len(query.ads))
