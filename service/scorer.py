"""One request from text to scores: encode, queue, collect, calibrate. Owns the deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.batching.batcher import Batcher
from service.batching.pair_queue import Encoded, PendingRequest
from service.clock import Clock
from service.domain import Ad, AdScore, PairStatus, ScoreAnswer, ScoreQuery, StageTimes
from service.errors import DeadlineExceeded, InferenceFailed, NotReady

# Longer requests are tokenized in a thread. Tokenizing takes about 50 us for a pair of about 200
# characters, so this holds the event loop up for about 2 ms.
ENCODE_INLINE_MAX_CHARS = 8_000


class EncodedText(Encoded, Protocol):
    """What a request's bookkeeping needs to know of an encoded pair."""

    @property
    def truncated(self) -> bool:
        """Some of the text did not fit."""


P = TypeVar("P", bound=EncodedText)


class PairText(Protocol[P]):
    """The text side of a model and the meaning of its logits, as a bundle gives them."""

    def encode(self, query: str, ads: Sequence[Ad]) -> list[P]:
        """One encoded pair per ad, in order. Thread-safe."""

    def to_scores(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """(n,) calibrated scores of (n, k) logits."""


class Scorer(Generic[P]):
    """Scores one request at a time; any number may be under way."""

    def __init__(self, text: PairText[P], batcher: Batcher[P], clock: Clock) -> None:
        self._text = text
        self._batcher = batcher
        self._clock = clock
        # One thread: many long requests must not take the cores from the inference.
        self._long_texts = ThreadPoolExecutor(1, thread_name_prefix="long-texts")

    async def score(self, query: ScoreQuery) -> ScoreAnswer:
        """Score every ad that can be scored in time.

        Returns:
            One score per ad, in order. Ads without one say why in their status.

        Raises:
            QueueFull: Refused at the door; nothing was spent on it but the encoding.
            NotReady: The service drains, or stopped before any ad had a score.
            DeadlineExceeded: Time ran out before any ad had a score.
            InferenceFailed: The model failed on every ad.
        """
        accepted_s = self._clock.now_s()
        deadline_s = accepted_s + query.timeout_s
        pairs = await self._encode(query, deadline_s)
        encoded_s = self._clock.now_s()
        if pairs is None or encoded_s >= deadline_s:
            raise DeadlineExceeded(query.timeout_s, len(query.ads))
        request = self._batcher.submit(pairs, deadline_s, query.priority)
        timer = self._clock.call_at(deadline_s, request.close)
        try:
            await request.done
        finally:
            # A caller that has gone cancels `done` here, which closes the request: its pairs
            # cost nothing from then on.
            timer.cancel()
        if PairStatus.OK not in request.statuses:
            raise self._nothing_scored(query, request)
        scores = self._collect(query, pairs, request)
        ended_s = self._clock.now_s()
        started_s = request.started_s or encoded_s
        times = StageTimes(
            encode_s=encoded_s - accepted_s,
            queue_s=started_s - encoded_s,
            inference_s=ended_s - started_s,
            total_s=ended_s - accepted_s,
        )
        return ScoreAnswer(query.request_id, scores, times)

    async def _encode(self, query: ScoreQuery, deadline_s: float) -> list[P] | None:
        """The encoded pairs; None where the deadline came first."""
        n_chars = sum(len(ad.title) + len(ad.description) + len(ad.text) for ad in query.ads)
        if n_chars + len(query.query) <= ENCODE_INLINE_MAX_CHARS:
            return self._text.encode(query.query, query.ads)
        loop = asyncio.get_running_loop()
        encoding = loop.run_in_executor(self._long_texts, self._text.encode, query.query, query.ads)
        late: asyncio.Future[list[P]] = loop.create_future()
        timer = self._clock.call_at(deadline_s, lambda: late.set_result([]))
        try:
            await asyncio.wait({encoding, late}, return_when=asyncio.FIRST_COMPLETED)
            return encoding.result() if encoding.done() else None
        finally:
            timer.cancel()
            encoding.cancel()  # what has not begun never will
            late.cancel()

    def _nothing_scored(
        self, query: ScoreQuery, request: PendingRequest
    ) -> DeadlineExceeded | InferenceFailed | NotReady:
        if request.was_cut_off:
            return NotReady("the service stopped before this request was scored")
        if all(status is PairStatus.FAILED for status in request.statuses):
            return InferenceFailed()
        return DeadlineExceeded(query.timeout_s, len(query.ads))

    def _collect(
        self, query: ScoreQuery, pairs: Sequence[P], request: PendingRequest
    ) -> tuple[AdScore, ...]:
        known = [(i, logits) for i, logits in enumerate(request.logits) if logits is not None]
        values = self._text.to_scores(np.stack([logits for _, logits in known]))
        score_of = {index: float(value) for (index, _), value in zip(known, values, strict=True)}
        scores = []
        for index, (ad, pair) in enumerate(zip(query.ads, pairs, strict=True)):
            score = score_of.get(index)
            eligible = None if query.min_score is None else (score or 0.0) >= query.min_score
            scores.append(
                AdScore(
                    ad_id=ad.id,
                    score=score,
                    status=request.statuses[index],
                    truncated=pair.truncated,
                    eligible=None if score is None else eligible,
                )
            )
        return tuple(scores)
