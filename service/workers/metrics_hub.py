"""The exposition of all workers, asked for by whichever of them is scraped."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from prometheus_client import CollectorRegistry

from service.workers.link import AskFailed, Link, LinkLost
from service.workers.merge_metrics import lost, merged
from service.workers.series import Snapshot, exposition, from_json, snapshot

logger = logging.getLogger(__name__)

ANSWER_S = 1.0
"""For a worker to tell its series; after that its last ones stand for it."""


class MetricsHub:
    """Remembers what each worker told last, and what those had counted that are no more."""

    def __init__(self, own: CollectorRegistry, answer_s: float = ANSWER_S) -> None:
        """Nobody is known yet.

        Args:
            own: Series of the supervisor, which are part of the whole.
            answer_s: Time for a worker to tell its series.
        """
        self._own = own
        self._answer_s = answer_s
        self._latest: dict[Link, Snapshot] = {}
        self._lost: Snapshot = {}

    def joined(self, link: Link) -> None:
        """There is a new worker; it has counted nothing yet."""
        self._latest[link] = {}

    def left(self, link: Link) -> None:
        """A worker has ended; what it had counted stays."""
        self._lost = merged([self._lost, lost(self._latest.pop(link, {}), {})])

    async def exposition(self, links: Mapping[int, Link]) -> bytes:
        """The series of all workers.

        Args:
            links: By the worker's number; all are asked at the same time.
        """
        await asyncio.gather(*(self._look(number, link) for number, link in links.items()))
        return exposition(merged([snapshot(self._own), self._lost, *self._latest.values()]))

    async def _look(self, number: int, link: Link) -> None:
        try:
            now = from_json(await link.ask("series", timeout_s=self._answer_s))
        except LinkLost:
            return
        except (TimeoutError, AskFailed):
            logger.warning("a worker's metrics are those of before", extra={"worker": number})
            return
        before = self._latest.get(link)
        if before is None:  # it ended meanwhile
            return
        self._lost = merged([self._lost, lost(before, now)])
        self._latest[link] = now
