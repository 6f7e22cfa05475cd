"""Computed scores on their way to redis: after the answers, many at once, and never too many."""

from __future__ import annotations

import logging
from collections import deque

from service.clock import Clock, Timer
from service.shared_cache.commands import Answer, Command, Connection, Refusal
from service.shared_cache.counts import SharedCacheCounts, WriteResult
from service.shared_cache.link import Link

logger = logging.getLogger(__name__)

MAX_QUEUED = 4096
BATCH = 64  # redis takes some 0.1 ms for so many, and lookups wait behind them
PAUSE_S = 0.002  # between batches, and from the first score to its batch: the answer goes first


class Writes:
    """Mutable state: the queue, and whether a batch is under way."""

    def __init__(self, link: Link, clock: Clock, ttl_s: int, counts: SharedCacheCounts) -> None:
        """Write nothing yet.

        Args:
            link: To redis.
            clock: Monotonic time.
            ttl_s: Seconds after which redis forgets an entry.
            counts: Of the writes, kept up to date.
        """
        self._link = link
        self._clock = clock
        self._ttl = b"%d" % ttl_s
        self._counts = counts.writes
        self._queue: deque[Command] = deque()
        self._timer: Timer | None = None
        self._under_way = False
        self._told: str | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Have an entry written soon; dropped where there is no redis, or too much to write."""
        if self._link.connection is None or len(self._queue) >= MAX_QUEUED:
            self._counts[WriteResult.DROPPED] += 1
            return
        self._queue.append((b"SET", key, value, b"EX", self._ttl))
        self._write_soon()

    def _write_soon(self) -> None:
        if self._timer is None and not self._under_way and self._queue:
            self._timer = self._clock.call_at(self._clock.now_s() + PAUSE_S, self._write)

    def _write(self) -> None:
        self._timer = None
        connection = self._link.connection
        if connection is None:
            self._counts[WriteResult.DROPPED] += len(self._queue)
            self._queue.clear()
            return
        batch = [self._queue.popleft() for _ in range(min(BATCH, len(self._queue)))]
        self._under_way = True

        def on_answers(answers: list[Answer] | None) -> None:
            self._under_way = False
            self._take(connection, answers, len(batch))
            self._write_soon()

        connection.send(batch, on_answers)

    def _take(self, connection: Connection, answers: list[Answer] | None, n_sent: int) -> None:
        n_written = answers.count(b"OK") if answers else 0
        self._counts[WriteResult.WRITTEN] += n_written
        self._counts[WriteResult.FAILED] += n_sent - n_written
        refusals = [answer for answer in answers or () if isinstance(answer, Refusal)]
        self._tell(str(refusals[0]) if refusals else None)
        if answers and n_written + len(refusals) < n_sent:
            connection.abort("redis answers something else than was asked")

    def _tell(self, why: str | None) -> None:
        """Once for each reason, not once for each batch."""
        if why is not None and why != self._told:
            logger.warning("the shared cache takes no scores", extra={"why": why})
        self._told = why
