"""The histogram of scores, which is fed for every ad and so must cost next to nothing."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterable, Iterator

from prometheus_client.core import HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

BOUNDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


class ScoreHistogram(Collector):
    """`adrel_score`; written by the event loop alone."""

    def __init__(self) -> None:
        self._counts = [0] * (len(BOUNDS) + 1)
        self._sum = 0.0

    def observe(self, scores: Iterable[float]) -> None:
        """Count a request's scores in 0-1."""
        counts, place = self._counts, bisect.bisect_left
        for score in scores:
            counts[place(BOUNDS, score)] += 1
            self._sum += score

    def counts(self) -> tuple[int, ...]:
        """Scores so far in each of the ten equal bins of 0-1."""
        return tuple(self._counts[: len(BOUNDS)])

    def collect(self) -> Iterator[Metric]:
        """The family as it stands."""
        names = [*map(str, BOUNDS), "+Inf"]
        cumulative = itertools.accumulate(self._counts)
        family = HistogramMetricFamily("adrel_score", "Calibrated scores given.")
        family.add_metric((), list(zip(names, cumulative, strict=True)), self._sum)
        yield family
