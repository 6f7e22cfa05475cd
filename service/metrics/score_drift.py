"""How far the scores given lately are from those that the model gave at its export.

Computed from the counts of `adrel_score` when the metrics are scraped: requests pay nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

HALF_LIFE_S = 3600.0
"""Age at which a score counts half."""

MIN_SCORES = 500
"""Below it chance moves the index too much: with n scores in k bins by (k - 1) / n on average.

Source: Yurdakul and Naranjo, Statistical properties of the population stability index (2020).
"""

SMOOTHING = 0.001
"""Share that is added to each bin, so that an empty one has a logarithm.

Additive (Lidstone) smoothing: Manning and Schuetze, Foundations of Statistical Natural Language
Processing (1999), 6.2.2. Small beside a share that matters, large beside the manifest's rounding
of 1e-4.
"""


def population_stability_index(live: Sequence[float], reference: Sequence[float]) -> float:
    """The sum of (p - q) ln(p / q) over the bins, p and q being the smoothed shares.

    0 where the shares are equal, symmetric, never negative. By convention under 0.1 is no drift
    and over 0.25 is a different population.

    Args:
        live: Weight of each bin, of any sum over 0.
        reference: Likewise, in the same bins.

    Source: Siddiqi, Credit Risk Scorecards (2006), on the system stability report.
    """
    pairs = zip(_smoothed_shares(live), _smoothed_shares(reference), strict=True)
    return math.fsum((p - q) * math.log(p / q) for p, q in pairs)


def _smoothed_shares(weights: Sequence[float]) -> list[float]:
    total, room = math.fsum(weights), 1 + SMOOTHING * len(weights)
    return [(weight / total + SMOOTHING) / room for weight in weights]


class ScoreDrift(Collector):
    """`adrel_score_drift`, and on how many scores it rests.

    0 until there are `MIN_SCORES` of them, and where there is nothing to compare with.
    """

    def __init__(self, counts: Callable[[], Sequence[int]]) -> None:
        """Watch.

        Args:
            counts: Scores so far in each bin; only grows.
        """
        self._counts = counts
        self._now_s: Callable[[], float] = float
        self._reference: Sequence[float] = ()
        self._recent: list[float] = []
        self._seen: Sequence[int] = ()
        self._seen_s = 0.0

    def compare_with(self, reference: Sequence[float], now_s: Callable[[], float]) -> None:
        """Compare with this from now on, and forget the scores up to now: another model's.

        Args:
            reference: Share of the scores in each bin at export.
            now_s: Monotonic seconds.
        """
        self._reference, self._now_s = reference, now_s
        self._seen, self._seen_s = tuple(self._counts()), now_s()
        self._recent = [0.0] * len(self._seen)

    def collect(self) -> Iterator[Metric]:
        """The families as they stand."""
        self._catch_up()
        n_scores = math.fsum(self._recent)
        known = n_scores >= MIN_SCORES and math.fsum(self._reference) > 0
        yield GaugeMetricFamily(
            "adrel_score_drift",
            "Population stability index of recent scores against the export's; 0 if too few.",
            value=population_stability_index(self._recent, self._reference) if known else 0.0,
        )
        yield GaugeMetricFamily(
            "adrel_score_drift_scores", "Recent scores that the drift rests on.", value=n_scores
        )

    def _catch_up(self) -> None:
        """What came since the last look counts in full, what was there before has aged."""
        now_s, counts = self._now_s(), tuple(self._counts())
        kept = 0.5 ** ((now_s - self._seen_s) / HALF_LIFE_S)
        self._recent = [
            recent * kept + (count - seen)
            for recent, count, seen in zip(self._recent, counts, self._seen, strict=False)
        ]
        self._seen, self._seen_s = counts, now_s
