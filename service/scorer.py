"""One request from text to scores: caches, encode, queue, collect. Owns the deadline."""

from __future__ import annotations

import asyncio
import functools
from typing import Generic

import numpy as np

from service.batching.batcher import Batcher
from service.batching.generation import Generation
from service.batching.pair_job import Logits, PairJob, PendingRequest
from service.caching.score_cache import ScoreCache
from service.clock import Clock
from service.domain import Ad, PairStatus, ScoreAnswer, ScoreQuery
from service.pair_seen import PairSeen
from service.pair_text import P, PairText
from service.pairs_in_flight import PairsInFlight, subscribe
from service.score_answer import PairDetails, Prepared, answer_of
from service.shared_cache.shared_scores import Asked, SharedScores
from service.text_tokens import INLINE_MAX_CHARS, TextTokens

AD_MARGIN_S = 2e-5  # to put one ad into the answer
MARGIN_SHARE = 0.25  # the most of a short timeout that is given up for the margin

# Joining a pair takes 5 us. After so many of them the event loop has its turn, so that a request of
# 1,000 ads does not hold up all others.
PAIRS_A_STEP = 64


class Scorer(Generic[P]):
    """Scores requests by one model; any number may be under way.

    When another model takes over it gets a scorer of its own, and the requests that this one has
    begun with are finished by it: no answer has scores of two models.

    Mutable state: the cache, and the pairs in flight.
    """

    def __init__(
        self,
        text: PairText[P],
        generation: Generation[P],
        batcher: Batcher[P],
        clock: Clock,
        scores: ScoreCache,
        tokens: TextTokens,
        answer_margin_s: float,
        shared: SharedScores | None = None,
    ) -> None:
        """Join the parts.

        Args:
            text: The text side of the model.
            generation: Its side in the batches.
            batcher: Takes pairs.
            clock: Monotonic time.
            scores: What was scored before.
            tokens: Tokenizes.
            answer_margin_s: How long before its deadline an answer is put together.
            shared: What all replicas have scored before, where they share it.
        """
        self._answer_margin_s = answer_margin_s
        self._text = text
        self._generation = generation
        self._batcher = batcher
        self._clock = clock
        self._scores = scores
        self._tokens = tokens
        self._shared = shared
        self._in_flight = PairsInFlight(batcher, scores.store.counts)

    async def score(self, query: ScoreQuery) -> ScoreAnswer:
        """Score every ad that can be scored in time; the clock starts now.

        Raises:
            ServiceError: As `complete` does.
        """
        prepared = self.prepare(query, self._clock.now_s())
        return await self.complete(prepared) if prepared.missing else self.collect(prepared)

    def prepare(self, query: ScoreQuery, accepted_s: float) -> Prepared:
        """Look up what is known; with nothing missing the answer can be collected at once.

        Args:
            query: The request.
            accepted_s: Instant from which its timeout counts.
        """
        texts = [self._text.ad_text(ad) for ad in query.ads]
        keys = (
            self._scores.keys(query.query, texts)
            if not query.queries
            else self._scores.keys_of_pairs(query.queries, texts)
        )
        found, logits, truncated = self._scores.lookup(keys)
        margin_s = self._answer_margin_s + AD_MARGIN_S * len(texts)
        margin_s = min(margin_s, MARGIN_SHARE * query.timeout_s)
        answer_s = accepted_s + query.timeout_s - margin_s
        pending = PendingRequest(
            len(texts),
            self._text.n_logits,
            answer_s,
            query.priority,
            all_or_nothing=query.all_or_nothing,
        )
        pending.settle_cached(found, logits)
        missing = np.flatnonzero(~found).tolist()
        return Prepared(query, texts, keys, pending, truncated.tolist(), missing, accepted_s)

    async def complete(self, prepared: Prepared) -> ScoreAnswer:
        """Compute what is missing, as far as there is time.

        Returns:
            One score per ad, in order. Ads without one say why in their status.

        Raises:
            QueueFull: Refused at the door; nothing of it was admitted.
            DeadlineUnreachable: Likewise.
            NotReady: The service drains, or stopped before any ad had a score.
            DeadlineExceeded: Time ran out before any ad had a score.
            InferenceFailed: The model failed on every ad.
        """
        pending = prepared.pending
        timer = self._clock.call_at(pending.deadline_s, pending.close)
        try:
            new = self._in_flight.share(prepared)
            asked = self._ask_shared(prepared, new)
            if sum(len(prepared.texts[indices[0]]) for indices in new.values()) > INLINE_MAX_CHARS:
                # Before much is spent on the texts: are they known elsewhere, and is there room for
                # the others if they are all short?
                await self._take_shared(prepared, new, asked)
                asked = None
                if new:
                    self._batcher.check_room(pending, self._generation, [1] * len(new))
            jobs = await self._jobs(prepared, new, asked)
            encoded_s = self._clock.now_s()
            if encoded_s >= pending.deadline_s:
                pending.close()  # the timer may be a moment late
            if not pending.closed:
                self._in_flight.submit(pending, jobs)
            await pending.done
        finally:
            timer.cancel()
            pending.close()  # also when the caller has gone: what is left costs nothing from now on
        return self.collect(prepared, encoded_s)

    def collect(self, prepared: Prepared, encoded_s: float | None = None) -> ScoreAnswer:
        """The answer from what is known.

        Args:
            prepared: The request.
            encoded_s: When its pairs were ready for the queue; None where all were cached.

        Raises:
            ServiceError: As `answer_of` does.
        """
        return answer_of(prepared, self._text.to_scores, self._clock.now_s(), encoded_s)

    def details(self, prepared: Prepared) -> PairDetails:
        """More of a request that was answered; nothing is kept for it beforehand."""
        return PairDetails(self._text.to_margins(prepared.pending.logits), prepared.computed_tokens)

    async def see(self, query: str, ad: Ad) -> PairSeen:
        """What the model reads of a pair, without scoring it."""
        return await self._tokens.beside(
            functools.partial(self._text.see, query, self._text.ad_text(ad))
        )

    def _ask_shared(self, prepared: Prepared, new: dict[bytes, list[int]]) -> Asked | None:
        """Begin to look up in the shared cache what only a computation could tell otherwise."""
        if self._shared is None or not new or prepared.query.probe:
            return None
        return self._shared.ask(list(new), prepared.pending.deadline_s)

    async def _take_shared(
        self, prepared: Prepared, new: dict[bytes, list[int]], asked: Asked | None
    ) -> None:
        """Wait for what was asked, settle what is known, and leave the others in `new`."""
        if self._shared is None or asked is None:
            return
        found = await self._shared.answer(asked)
        for row, logits, truncated in zip(found.rows, found.logits, found.truncated, strict=True):
            key = asked.digests[row]
            for index in new.pop(key):
                prepared.pending.settle(index, PairStatus.CACHED, logits)
                prepared.truncated[index] = truncated
            self._scores.keep(key, logits, truncated)

    async def _jobs(
        self, prepared: Prepared, new: dict[bytes, list[int]], asked: Asked | None
    ) -> dict[bytes, PairJob[P]]:
        """A job for each key, with the request subscribed; none where the deadline comes first.

        What the shared cache turns out to know meanwhile is settled, and leaves `new`.
        """
        jobs: dict[bytes, PairJob[P]] = {}
        if not new:
            return jobs
        if asked is not None:
            await asyncio.sleep(0)  # the question leaves now, and is answered while we encode
        query = prepared.query
        queries = [query.query]
        if query.queries:
            queries = list(dict.fromkeys(query.queries[indices[0]] for indices in new.values()))
        texts = [prepared.texts[indices[0]] for indices in new.values()]
        all_texts, keep = [*queries, *texts], not query.probe
        ids = await self._tokens.of(all_texts, prepared.pending.done, keep=keep)
        if ids is None:
            return jobs
        ids_of = dict(zip(queries, ids, strict=False))  # the ads' ids follow those of the queries
        ids_of_ad = dict(zip(new, ids[len(queries) :], strict=True))
        await self._take_shared(prepared, new, asked)
        query_ids = ids[0]
        pairs: list[P] = []
        for key, indices in new.items():
            if query.queries:
                query_ids = ids_of[query.queries[indices[0]]]
            if pairs and len(pairs) % PAIRS_A_STEP == 0:
                await asyncio.sleep(0)
            pairs.append(self._text.join(query_ids, ids_of_ad[key]))
        for (key, indices), encoded in zip(new.items(), pairs, strict=True):
            # Another request may have asked for the same pair while this one was encoded.
            jobs[key] = self._in_flight.job(key) or PairJob(
                encoded,
                self._generation,
                functools.partial(self._settled, key, encoded.truncated, keep),
            )
            subscribe(prepared, indices, jobs[key])
        return jobs

    def _settled(self, key: bytes, truncated: bool, keep: bool, logits: Logits | None) -> None:
        self._in_flight.landed(key)
        if logits is not None and keep:
            self._scores.keep(key, logits, truncated)
            if self._shared is not None:
                self._shared.keep(key, logits, truncated)
