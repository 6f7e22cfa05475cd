"""A histogram that is fed for every pair, and so must cost next to nothing."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator, Sequence

from prometheus_client import CollectorRegistry
from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector


class PlainHistogram(Collector):
    """One series without labels or a lock: it is written by the event loop alone."""

    def __init__(
        self, name: str, documentation: str, buckets: Sequence[float], registry: CollectorRegistry
    ) -> None:
        """Register it.

        Args:
            name: Of the family.
            documentation: What it tells.
            buckets: Their upper bounds, rising.
            registry: Where it goes.
        """
        self._name, self._documentation = name, documentation
        self._bounds = tuple(float(bound) for bound in buckets)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0
        registry.register(self)

    def observe(self, values: Iterable[float]) -> None:
        """Count the values of a request or a batch."""
        counts, bounds, place = self._counts, self._bounds, bisect.bisect_left
        for value in values:
            counts[place(bounds, value)] += 1
            self._sum += value

    def counts(self) -> tuple[int, ...]:
        """Values so far in each bucket, without those above the last bound."""
        return tuple(self._counts[: len(self._bounds)])

    def collect(self) -> Iterator[Metric]:
        """The family as it stands."""
        names = [*map(str, self._bounds), "+Inf"]
        cumulative = itertools.accumulate(self._counts)
        family = HistogramMetricFamily(self._name, self._documentation)
        family.add_metric((), list(zip(names, cumulative, strict=True)), self._sum)
        yield family
