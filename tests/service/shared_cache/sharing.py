"""A shared cache that is in use, over a fake connection and a fake clock."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np

from service.shared_cache.counts import LookupResult, WriteResult
from service.shared_cache.entry import EntryFormat
from service.shared_cache.shared_scores import SharedCache, SharedScores
from tests.fakes import FakeClock
from tests.service.shared_cache.fake_redis import FakeConnection, FakeRedis, pass_time

TIMEOUT_S = 0.002


@dataclass
class Sharing:
    clock: FakeClock
    redis: FakeRedis
    cache: SharedCache
    entries: EntryFormat
    scores: SharedScores
    lookup_seconds: list[float] = field(default_factory=list)

    @property
    def connection(self) -> FakeConnection:
        """The newest."""
        return self.redis.connections[-1]

    @property
    def looked_up(self) -> dict[str, int]:
        """Pairs by result, where there are any."""
        return {result.value: n for result, n in self.cache.counts.lookups.items() if n}

    @property
    def wrote(self) -> dict[str, int]:
        """Likewise, of writes."""
        return {result.value: n for result, n in self.cache.counts.writes.items() if n}

    def value(self, digest: bytes, logit: float, *, truncated: bool = False) -> bytes:
        return self.entries.pack(digest, np.array([logit], np.float32), truncated)


@asynccontextmanager
async def sharing(clock: FakeClock | None = None) -> AsyncIterator[Sharing]:
    """In use from the start; its probe is answered and forgotten."""
    clock, redis = clock or FakeClock(), FakeRedis()
    seconds: list[float] = []
    cache = SharedCache(
        redis.connect,
        clock,
        timeout_s=TIMEOUT_S,
        ttl_s=60,
        random=lambda: 1.0,
        on_lookup=seconds.append,
    )
    entries = EntryFormat("v1", "m", 1)
    task = asyncio.create_task(cache.run())
    await pass_time(clock, 0)
    redis.connections[0].sent.clear()
    assert set(cache.counts.lookups) == set(LookupResult)
    assert set(cache.counts.writes) == set(WriteResult)
    try:
        yield Sharing(clock, redis, cache, entries, SharedScores(cache, entries), seconds)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
