"""The shadow at work: requests that were answered wait here until nothing else is to be done."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

from service.clock import Clock
from service.domain import Ad, ScoreAnswer, ScoreQuery
from service.shadow import policy
from service.shadow.comparison import Comparison, compare

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Listener(Protocol):
    """Who hears of the shadow. Called in its thread and on the event loop."""

    def pair_took(self, seconds: float) -> None:
        """A pair was computed, or the shadow failed on it."""

    def compared(self, comparison: Comparison) -> None:
        """All pairs of a request were computed."""

    def failed(self, n_pairs: int) -> None:
        """The shadow failed on a request of so many."""

    def dropped(self, n_pairs: int) -> None:
        """A request of so many had no room, or waited when the model that serves changed."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A request that waits for the shadow.

    Attributes:
        pairs: Query and ad of each pair that was scored.
        given: Their scores.
        min_score: As the request has it.
        ranked: The ads are of one query.
        n_chars: Of the texts.
    """

    pairs: list[tuple[str, Ad]]
    given: list[float]
    min_score: float | None
    ranked: bool
    n_chars: int


class ShadowScorer:
    """Scores a share of the answered requests again, each whole or not at all.

    Mutable state, touched by the event loop alone: what waits, and how much that is. `running` is
    written by the shadow's thread.
    """

    def __init__(
        self,
        score: Callable[[str, Ad], float],
        share: float,
        may_start: Callable[[], bool],
        clock: Clock,
        listener: Listener,
        *,
        on_thread_start: Callable[[], None] = lambda: None,
    ) -> None:
        """Score nothing yet; `run` does.

        Args:
            score: The score of one pair by the shadow.
            share: Of the requests, in 0-1.
            may_start: Whether a pair may be computed now; see `policy.may_start`.
            clock: Monotonic time.
            listener: Hears what came of it.
            on_thread_start: Called in the shadow's thread before its first pair.
        """
        self._score = score
        self._share = share
        self._may_start = may_start
        self._clock = clock
        self._listener = listener
        self._thread = ThreadPoolExecutor(1, "shadow", initializer=on_thread_start)
        self._waiting: deque[Sampled] = deque()
        self._waiting_pairs = 0
        self._waiting_chars = 0
        self._offered = asyncio.Event()
        self._complained = False
        self.running = False

    @property
    def waiting_pairs(self) -> int:
        """Pairs of the requests that wait, and of the one at work."""
        return self._waiting_pairs

    def offer(self, query: ScoreQuery, answer: ScoreAnswer) -> None:
        """A request was answered; if it is of the sample and there is room, it waits from now on.

        Args:
            query: The request.
            answer: What it was answered.
        """
        if query.probe or not policy.is_sampled(query.request_id, self._share):
            return
        sampled = _sampled(query, answer)
        n_pairs = len(sampled.pairs)
        if not policy.fits(self._waiting_pairs, self._waiting_chars, n_pairs, sampled.n_chars):
            self._listener.dropped(n_pairs)
            return
        self._waiting.append(sampled)
        self._waiting_pairs += n_pairs
        self._waiting_chars += sampled.n_chars
        self._offered.set()

    def forget(self) -> None:
        """Drop what waits: another model serves, which did not give these scores."""
        while self._waiting:
            sampled = self._waiting.popleft()
            self._listener.dropped(len(sampled.pairs))
            self._done_with(sampled)

    async def run(self) -> None:
        """Score what waits until cancelled; nothing that the shadow does ends it."""
        try:
            while True:
                await self._offered.wait()
                await self._pause(policy.LOOK_EVERY_S)  # the answer leaves first
                while self._waiting:
                    sampled = self._waiting.popleft()
                    await self._try(sampled)
                    self._done_with(sampled)
                self._offered.clear()
        finally:
            self._thread.shutdown(wait=False, cancel_futures=True)

    async def _try(self, sampled: Sampled) -> None:
        try:
            await self._compare(sampled)
        except Exception:  # whatever it is, it must not reach the model that serves
            self._listener.failed(len(sampled.pairs))
            if not self._complained:
                logger.exception("the shadow failed; until it works again this is only counted")
            self._complained = True
        else:
            self._complained = False

    async def _compare(self, sampled: Sampled) -> None:
        scores = []
        for query, ad in sampled.pairs:
            while not self._may_start():
                await self._pause(policy.LOOK_EVERY_S)
            started_s = self._clock.now_s()
            try:
                scores.append(await self._in_thread(functools.partial(self._score, query, ad)))
            finally:
                took_s = self._clock.now_s() - started_s
                self._listener.pair_took(took_s)
            await self._pause(policy.rest_s(took_s))

        def conclude() -> None:
            """In the thread: of a thousand ads it takes milliseconds."""
            self._listener.compared(
                compare(sampled.given, scores, sampled.min_score, ranked=sampled.ranked)
            )

        await self._in_thread(conclude)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        def watched() -> T:
            self.running = True
            try:
                return work()
            finally:
                self.running = False

        return await asyncio.get_running_loop().run_in_executor(self._thread, watched)

    async def _pause(self, seconds: float) -> None:
        over = asyncio.Event()
        timer = self._clock.call_at(self._clock.now_s() + seconds, over.set)
        try:
            await over.wait()
        finally:
            timer.cancel()

    def _done_with(self, sampled: Sampled) -> None:
        self._waiting_pairs -= len(sampled.pairs)
        self._waiting_chars -= sampled.n_chars


def _sampled(query: ScoreQuery, answer: ScoreAnswer) -> Sampled:
    queries = query.queries or [query.query] * len(query.ads)
    scored = [
        (text, ad, given.score)
        for text, ad, given in zip(queries, query.ads, answer.scores, strict=True)
        if given.score is not None
    ]
    n_chars = sum(
        len(text) + len(ad.title) + len(ad.description) + len(ad.text) for text, ad, _ in scored
    )
    return Sampled(
        [(text, ad) for text, ad, _ in scored],
        [score for *_, score in scored],
        query.min_score,
        ranked=not query.queries,
        n_chars=n_chars,
    )
