"""A scorer with a fake clock and a fake model, as its tests and those of the routes use it."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import numpy as np
from numpy.typing import NDArray

from service.batching.batch import BatchDone
from service.batching.batcher import Batcher
from service.batching.cost_model import BatchCost
from service.batching.planner import BatchLimits
from service.caching.score_cache import ScoreCache
from service.caching.token_cache import TokenCache
from service.domain import Ad, ScoreQuery
from service.pair_seen import PairSeen, SideSeen
from service.scorer import Scorer
from service.shared_cache.shared_scores import SharedScores
from service.text_tokens import TextTokens
from tests.fakes import FakeClock, FakeModel, FakePair, generation


class FakeText:
    """An ad's text is its logit; its length is that of the text."""

    n_logits = 1

    def __init__(self) -> None:
        self.joined = 0
        self.tokenized: list[str] = []
        self.gate = threading.Event()
        self.gate.set()

    def ad_text(self, ad: Ad) -> str:
        return ad.text

    def tokenize(self, texts: Sequence[str]) -> list[NDArray[np.int32]]:
        assert self.gate.wait(timeout=30)
        self.tokenized += texts
        return [np.array([float(t.split()[0]) if t != "q" else 0, len(t)], np.int32) for t in texts]

    def join(self, query_ids: NDArray[np.int32], ad_ids: NDArray[np.int32]) -> FakePair:
        self.joined += 1
        logit, length = ad_ids.tolist()
        return FakePair(int(query_ids[1]) + length, logit, length > 9)

    def to_scores(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        return np.asarray(logits[:, 0].astype(np.float64) / 100)

    def to_margins(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        return logits[:, 0].astype(np.float64)

    def see(self, query: str, ad_text: str) -> PairSeen:
        return PairSeen((), SideSeen(query, (), len(query)), SideSeen(ad_text, (), len(ad_text)))


class Bench:
    def __init__(
        self,
        cache_bytes: int = 0,
        clock: FakeClock | None = None,
        shared: SharedScores | None = None,
    ) -> None:
        self.clock, self.model = clock or FakeClock(), FakeModel()
        self.done: list[BatchDone] = []
        self.batcher: Batcher[FakePair] = Batcher(
            BatchLimits(max_pairs=2, max_padded_tokens=10**6, max_padding_ratio=0.9),
            workers=1,
            max_queue_s=0.1,
            clock=self.clock,
            on_batch=self.done.append,
        )
        self.text = FakeText()
        self.scores = ScoreCache(cache_bytes, 1, "v1")
        self.scorer: Scorer[FakePair] = Scorer(
            self.text,
            generation(self.model, BatchCost(1e-3, 1e-9, 1e-9)),
            self.batcher,
            self.clock,
            self.scores,
            TextTokens(self.text.tokenize, TokenCache(0, 8)),
            answer_margin_s=0.01,
            shared=shared,
        )


def query(*texts: str, timeout_s: float = 1.0, min_score: float | None = None) -> ScoreQuery:
    ads = tuple(Ad(f"ad-{i}", text=text) for i, text in enumerate(texts))
    return ScoreQuery("r1", "q", ads, timeout_s, min_score=min_score)


def several(*queries: str, texts: Sequence[str], timeout_s: float = 1.0) -> ScoreQuery:
    ads = tuple(Ad(f"ad-{i}", text=text) for i, text in enumerate(texts))
    return ScoreQuery("r1", queries[0], ads, timeout_s, queries=queries)


@asynccontextmanager
async def a_bench(cache_bytes: int = 0) -> AsyncIterator[Bench]:
    """A bench whose workers have ended when the block does."""
    made = Bench(cache_bytes=cache_bytes)
    yield made
    made.model.release()
    await made.batcher.drain(timeout_s=30)
