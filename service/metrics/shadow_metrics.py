"""Series of the shadow: which model it is, how much it scores, and how its scores differ.

There only where a shadow is configured, and then from the start.
"""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service.metrics.buckets import SECONDS
from service.shadow.comparison import Comparison

PAIR_RESULTS = ("scored", "failed", "dropped")
DIRECTIONS = ("higher", "equal", "lower")
TOPS = ("same", "other")
DECISIONS = ("kept", "gained", "lost")

DIFFERENCES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
AGREEMENTS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 1.0)


class ShadowMetrics:
    """Fed by the shadow, in its thread and on the event loop: the library's locks allow both."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything and create each labelled child.

        Args:
            registry: Where the collectors go.
        """
        self._info = Gauge(
            "adrel_shadow_model_info",
            "1 for the model that scores as the shadow.",
            ("name", "version", "precision", "provider"),
            registry=registry,
        )
        self._waiting = Gauge(
            "adrel_shadow_waiting_pairs", "Pairs that wait for the shadow now.", registry=registry
        )
        self._seconds = Histogram(
            "adrel_shadow_pair_duration_seconds",
            "Time of one pair in the shadow: the most that other work can wait for it.",
            buckets=SECONDS,
            registry=registry,
        )
        self._agreement = Histogram(
            "adrel_shadow_rank_agreement",
            "Share of a request's pairs of ads that the shadow orders like the given scores.",
            buckets=AGREEMENTS,
            registry=registry,
        )
        pairs = Counter(
            "adrel_shadow_pairs",
            "Pairs of the sampled requests: scored by the shadow, failed or dropped.",
            ("result",),
            registry=registry,
        )
        difference = Histogram(
            "adrel_shadow_score_difference",
            "How far the shadow's score is from the given one, and on which side.",
            ("direction",),
            buckets=DIFFERENCES,
            registry=registry,
        )
        tops = Counter(
            "adrel_shadow_tops",
            "Requests whose first ad is the same by the shadow, or another one.",
            ("result",),
            registry=registry,
        )
        decisions = Counter(
            "adrel_shadow_decisions",
            "Ads of requests with min_score whose eligibility the shadow kept, gained or lost.",
            ("result",),
            registry=registry,
        )
        self._pairs_of = {result: pairs.labels(result) for result in PAIR_RESULTS}
        self._difference_of = {side: difference.labels(side) for side in DIRECTIONS}
        self._top_of = {result: tops.labels(result) for result in TOPS}
        self._decision_of = {result: decisions.labels(result) for result in DECISIONS}

    def shadow_is(self, *, name: str, version: str, precision: str, provider: str) -> None:
        """Say which model it is.

        Args:
            name: Of the model.
            version: Likewise.
            precision: Of its weights.
            provider: Execution provider.
        """
        self._info.labels(name, version, precision, provider).set(1)

    def watch_waiting(self, n_pairs: Callable[[], int]) -> None:
        """Read how many pairs wait whenever the metrics are scraped."""
        self._waiting.set_function(n_pairs)

    def pair_took(self, seconds: float) -> None:
        """Record the time of one pair, whether it came to a score or not."""
        self._seconds.observe(seconds)

    def compared(self, comparison: Comparison) -> None:
        """Record a request of which the shadow has scored every pair."""
        self._pairs_of["scored"].inc(len(comparison.differences))
        for difference in comparison.differences:
            side = "higher" if difference > 0 else "lower" if difference < 0 else "equal"
            self._difference_of[side].observe(abs(difference))
        if comparison.rank_agreement is not None:
            self._agreement.observe(comparison.rank_agreement)
        if comparison.same_top is not None:
            self._top_of["same" if comparison.same_top else "other"].inc()
        self._decision_of["kept"].inc(comparison.n_kept)
        self._decision_of["gained"].inc(comparison.n_gained)
        self._decision_of["lost"].inc(comparison.n_lost)

    def failed(self, n_pairs: int) -> None:
        """Record a request on which the shadow failed."""
        self._pairs_of["failed"].inc(n_pairs)

    def dropped(self, n_pairs: int) -> None:
        """Record a request that was not scored for want of room, or since its model is gone."""
        self._pairs_of["dropped"].inc(n_pairs)
