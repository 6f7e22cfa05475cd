"""The shared cache as scoring sees it: ask for the pairs of a request, keep what was computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from service.clock import Clock
from service.shared_cache.breaker import Breaker, BreakerState
from service.shared_cache.counts import LookupResult, SharedCacheCounts
from service.shared_cache.entry import EntryFormat, Found, Logits
from service.shared_cache.link import Connect, Link
from service.shared_cache.lookups import Lookup, Lookups
from service.shared_cache.writes import Writes

SLACK_SHARE = 0.1  # the most of a request's time that is spent on waiting for redis
LEAST_WAIT_S = 0.0005  # less brings no answer: it is what a network takes, and the loop's timers


class SharedCache:
    """The connection to redis and what goes over it; one for a process, whichever model serves.

    Attributes:
        counts: What happened since the start.
        lookups: What is asked.
        writes: What is kept.
    """

    def __init__(
        self,
        connect: Connect,
        clock: Clock,
        *,
        timeout_s: float,
        ttl_s: int,
        random: Callable[[], float],
        on_lookup: Callable[[float], None],
    ) -> None:
        """Join the parts; nothing is connected before `run`.

        Args:
            connect: Makes a connection, see `Link`.
            clock: Monotonic time.
            timeout_s: After which an answer is not waited for.
            ttl_s: Seconds after which an entry is forgotten.
            random: Numbers in 0-1.
            on_lookup: Told how many seconds each lookup took.
        """
        self.counts = SharedCacheCounts()
        self.clock = clock
        self.timeout_s = timeout_s
        self._link = Link(connect, Breaker(random), clock, timeout_s)
        self.lookups = Lookups(self._link, clock, timeout_s, on_lookup)
        self.writes = Writes(self._link, clock, ttl_s, self.counts)

    @property
    def state(self) -> BreakerState:
        """Of the breaker."""
        return self._link.state

    async def run(self) -> None:
        """Keep a connection, until cancelled."""
        await self._link.run()

    def was_of_no_use(self) -> None:
        """An answer held nothing but what is none of ours."""
        self._link.failed("what stands in redis is none of ours")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request's pairs that are being looked up.

    Attributes:
        digests: Their keys in the local cache.
        lookups: For each of them, the lookup that has it.
        until_s: Instant until which the request waits.
    """

    digests: Sequence[bytes]
    lookups: Sequence[Lookup]
    until_s: float


class SharedScores:
    """One model's scores in the shared cache."""

    def __init__(self, cache: SharedCache, entries: EntryFormat) -> None:
        self._cache = cache
        self._entries = entries

    def ask(self, digests: Sequence[bytes], deadline_s: float) -> Asked | None:
        """Begin to look pairs up; others do meanwhile what they can.

        Args:
            digests: Keys of n >= 1 pairs in the local cache, each once.
            deadline_s: Of the request.

        Returns:
            None where there is no redis to ask, or no time to wait for it.
        """
        now_s = self._cache.clock.now_s()
        wait_s = min(self._cache.timeout_s, SLACK_SHARE * (deadline_s - now_s))
        lookups = None
        if wait_s >= LEAST_WAIT_S:
            lookups = self._cache.lookups.ask([self._entries.key(one) for one in digests])
        if lookups is None:
            self._cache.counts.lookups[LookupResult.SKIPPED] += len(digests)
            return None
        return Asked(digests, lookups, now_s + wait_s)

    async def answer(self, asked: Asked) -> Found:
        """What came in time, by row of what was asked."""
        for lookup in dict.fromkeys(asked.lookups):
            await lookup.wait(self._cache.clock, asked.until_s)
        counts = self._cache.counts.lookups
        values: list[object] = []
        for digest, lookup in zip(asked.digests, asked.lookups, strict=True):
            if lookup.values is None:
                counts[lookup.failure or LookupResult.TIMEOUT] += 1
                values.append(None)
            else:
                values.append(lookup.values[self._entries.key(digest)])
                counts[LookupResult.MISS] += values[-1] is None
        found = self._entries.unpack(asked.digests, values)
        counts[LookupResult.HIT] += len(found.rows)
        counts[LookupResult.INVALID] += found.n_invalid
        if found.n_invalid and not found.rows:
            self._cache.was_of_no_use()
        return found

    def keep(self, digest: bytes, logits: Logits, truncated: bool) -> None:
        """Have a computed pair written, once its answer has gone.

        Args:
            digest: Its key in the local cache.
            logits: (k,) float32, finite.
            truncated: Some of its text did not fit.
        """
        self._cache.writes.add(
            self._entries.key(digest), self._entries.pack(digest, logits, truncated)
        )
