"""The pairs of a request in another protocol: all of them scored, or an error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from service.api.answering import answer_query, invalid, timeout_s
from service.api.compatible.calls import Call
from service.api.compatible.dialects import NothingToScore, TextTooLong
from service.api.openapi_parts import TRUNCATED_HEADER
from service.api.request_ids import request_id
from service.api.schemas import REQUEST_ID_HEADER
from service.domain import Ad, PairStatus, Priority, ScoreAnswer, ScoreQuery, StageTimes
from service.errors import CUT_OFF, DeadlineExceeded, InferenceFailed, NotReady, TooManyAds


@dataclass(frozen=True, slots=True)
class Asked:
    """What to score.

    Attributes:
        queries: One for all texts, or one for each.
        texts: The ads' texts; an empty one is scored like any other.
        texts_field: What the protocol calls the texts; for messages.
        query_place: Likewise one query; `{}` is its number.
        text_place: Likewise one text.
        priority: Scheduling class.
        timeout_ms: Where the protocol has a field for it and it was given.
        may_cut: A text that does not fit may be cut.
    """

    queries: Sequence[str]
    texts: Sequence[str]
    texts_field: str = "documents"
    query_place: str = "query"
    text_place: str = "documents[{}]"
    priority: Priority = Priority.AUCTION
    timeout_ms: float | None = None
    may_cut: bool = True

    @property
    def n_chars(self) -> int:
        """Characters of all pairs; a query counts once for each of its texts."""
        repeats = len(self.texts) if len(self.queries) == 1 else 1
        return repeats * sum(map(len, self.queries)) + sum(map(len, self.texts))


@dataclass(frozen=True, slots=True)
class Scored:
    """The answer to `Asked`.

    Attributes:
        request_id: Of this request.
        scores: (n,) calibrated, in 0-1.
        margins: (n,) before calibration: the logit, or the log-odds of a head with several.
        computed_tokens: Of the pairs that were computed for it; cached ones cost none.
        times: Where the time went.
        model: The facts of the model that gave them.
        n_truncated: How many texts did not fit and were cut.
    """

    request_id: str
    scores: list[float]
    margins: list[float]
    computed_tokens: int
    times: StageTimes
    model: dict[str, Any]
    n_truncated: int

    @property
    def headers(self) -> dict[str, str]:
        """The request's id, and how many texts were cut, where any was."""
        headers = {REQUEST_ID_HEADER: self.request_id}
        if self.n_truncated:
            headers[TRUNCATED_HEADER] = str(self.n_truncated)
        return headers


async def score_pairs(call: Call, asked: Asked) -> Scored:
    """Score every pair.

    Raises:
        NothingToScore: There are no texts.
        TooManyAds: More than one request may carry.
        InvalidRequest: A query is blank, or a timeout is wrong.
        TextTooLong: A text did not fit and may not be cut.
        DeadlineExceeded: Some pair had no score in time.
        NotReady: Some pair had none when the service stopped.
        InferenceFailed: The model failed on some pair.
        ServiceError: As `answer_query` does.
    """
    n_texts, limits = len(asked.texts), call.state.limits
    if not n_texts:
        raise NothingToScore(asked.texts_field)
    if n_texts > limits.max_ads:
        raise TooManyAds(n_texts, limits.max_ads, asked.texts_field)
    for number, text in enumerate(asked.queries):
        if not text.strip():
            place = asked.query_place.format(number)
            raise invalid(place, "must not be empty or only white space")
    query = ScoreQuery(
        request_id=request_id(call.request),
        query=asked.queries[0],
        ads=tuple(Ad(str(number), text=text) for number, text in enumerate(asked.texts)),
        timeout_s=timeout_s(call.request, limits, asked.timeout_ms, may_cut=True),
        priority=asked.priority,
        queries=tuple(asked.queries) if len(asked.queries) > 1 else (),
        all_or_nothing=True,
    )
    answered = await answer_query(call.request, call.state, query, call.started_s)
    answer = answered.answer
    scores = _all_scores(query, answer)
    if not asked.may_cut:
        _refuse_what_was_cut(asked, answer)
    details = answered.details()
    return Scored(
        request_id=answer.request_id,
        scores=scores,
        margins=details.margins.tolist(),
        computed_tokens=details.computed_tokens,
        times=answer.times,
        model=answered.model,
        n_truncated=sum(ad.truncated for ad in answer.scores),
    )


def _all_scores(query: ScoreQuery, answer: ScoreAnswer) -> list[float]:
    scores = [ad.score for ad in answer.scores if ad.score is not None]
    n_pairs = len(query.ads)
    if len(scores) == n_pairs:
        return scores
    n_failed = sum(ad.status is PairStatus.FAILED for ad in answer.scores)
    if n_failed:
        raise InferenceFailed(f"the model failed on {n_failed} of {n_pairs} pairs of this request")
    if answer.was_cut_off:
        raise NotReady(CUT_OFF)
    raise DeadlineExceeded(query.timeout_s, n_pairs, len(scores))


def _refuse_what_was_cut(asked: Asked, answer: ScoreAnswer) -> None:
    for number, ad in enumerate(answer.scores):
        if ad.truncated:
            field = asked.text_place.format(number)
            problem = "does not fit the model with its query"
            raise TextTooLong(
                f"{field}: {problem}, and truncate is false",
                [{"field": field, "problem": problem}],
            )
