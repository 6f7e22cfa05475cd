"""Series of the requests: what was asked for, what came of it, and where the time went."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service.domain import AdScore, PairStatus, StageTimes
from service.metrics.buckets import PAIRS, SCORES, SECONDS
from service.metrics.plain_histogram import PlainHistogram

STAGES = ("encode", "queue", "inference")
SHED_REASONS = ("queue_full", "deadline_unreachable", "not_ready")
AUCTION_RESULTS = ("in_time", "late", "partial", "nothing")


class RequestMetrics:
    """Fed at the start and at the end of each request of a counted route.

    Attributes:
        scores: The histogram of the scores given.
    """

    def __init__(
        self, registry: CollectorRegistry, routes: Iterable[str], outcomes: Iterable[str]
    ) -> None:
        """Register everything and create each labelled child.

        Args:
            registry: Where the collectors go.
            routes: Every value of the label `route`.
            outcomes: Every value of the label `outcome`.
        """
        self._requests = Counter(
            "adrel_requests",
            "Requests by route and outcome: ok, partial, or the code of the error.",
            ("route", "outcome"),
            registry=registry,
        )
        self._auctions = Counter(
            "adrel_auction_requests",
            "Auctions' requests that were the callers' no fault, by what the auction got.",
            ("result",),
            registry=registry,
        )
        self._in_flight = 0
        Gauge(
            "adrel_requests_in_flight", "Requests that are being answered.", registry=registry
        ).set_function(lambda: self._in_flight)
        self._request_pairs = Histogram(
            "adrel_request_pairs",
            "Pairs that a request asks for, refused requests included.",
            buckets=PAIRS,
            registry=registry,
        )
        self._pairs = Counter(
            "adrel_pairs", "Pairs answered, by status.", ("status",), registry=registry
        )
        self._seconds = Histogram(
            "adrel_request_duration_seconds",
            "From the first byte read to the answer, errors included.",
            ("route",),
            buckets=SECONDS,
            registry=registry,
        )
        self._stage_seconds = Histogram(
            "adrel_stage_duration_seconds",
            "Where an answered request's time went.",
            ("stage",),
            buckets=SECONDS,
            registry=registry,
        )
        self._slack = Histogram(
            "adrel_deadline_slack_seconds",
            "Time left until the deadline when the answer left; 0 where it was reached.",
            buckets=(0.0, *SECONDS),
            registry=registry,
        )
        self._truncated = Counter(
            "adrel_truncated_pairs", "Pairs whose text did not fit the model.", registry=registry
        )
        self._shed = Counter(
            "adrel_shed", "Requests refused at the door, by reason.", ("reason",), registry=registry
        )
        self.scores = PlainHistogram("adrel_score", "Calibrated scores given.", SCORES, registry)
        # Finding a child by its labels costs more than counting with it.
        self._requests_of = functools.cache(self._requests.labels)
        self._seconds_of = functools.cache(self._seconds.labels)
        for route in routes:
            self._seconds_of(route)
            for outcome in outcomes:
                self._requests_of(route, outcome)
        self._stage_of = {stage: self._stage_seconds.labels(stage) for stage in STAGES}
        self._auction_of = {result: self._auctions.labels(result) for result in AUCTION_RESULTS}
        self._pair_of = {status: self._pairs.labels(status.value) for status in PairStatus}
        for reason in SHED_REASONS:
            self._shed.labels(reason)

    def started(self) -> None:
        """Record the start of any request of a counted route."""
        self._in_flight += 1

    def done(self, route: str, outcome: str, duration_s: float, n_pairs: int = 0) -> None:
        """Record the end of a request that was started.

        Args:
            route: One of those given at the start.
            outcome: Likewise.
            duration_s: From its start.
            n_pairs: Asked for; 0 where the request was not understood.
        """
        self._in_flight -= 1
        if n_pairs:
            self._request_pairs.observe(n_pairs)
        self._requests_of(route, outcome).inc()
        self._seconds_of(route).observe(duration_s)
        if outcome in SHED_REASONS:
            self._shed.labels(outcome).inc()

    def refused_unread(self, route: str, outcome: str) -> None:
        """Record a request that was refused at the door: it was never started, and took no time.

        Args:
            route: One of those given at the start.
            outcome: Likewise.
        """
        self._requests_of(route, outcome).inc()

    def auction_done(self, result: str) -> None:
        """Record what an auction got: one of `AUCTION_RESULTS`."""
        self._auction_of[result].inc()

    def scored(
        self, scores: Sequence[AdScore], times: StageTimes, slack_s: float, *, probe: bool = False
    ) -> None:
        """Record a request that was answered with scores.

        Args:
            scores: Its answer.
            times: Where its time went.
            slack_s: Time that was left until its deadline.
            probe: Its texts were made up, so they tell nothing of the traffic.
        """
        self._stage_of["encode"].observe(times.encode_s)
        self._stage_of["queue"].observe(times.queue_s)
        self._stage_of["inference"].observe(times.inference_s)
        self._slack.observe(max(0.0, slack_s))
        # At once for all ads: a counter's lock is dearer than a look at the ads.
        statuses = [ad.status for ad in scores]
        for status, pairs in self._pair_of.items():
            pairs.inc(statuses.count(status))
        if not probe:
            self._truncated.inc(sum([ad.truncated for ad in scores]))
            self.scores.observe([ad.score for ad in scores if ad.score is not None])

    def pairs_lost(self, status: PairStatus, n_pairs: int) -> None:
        """Record the pairs of a request that ended without any score."""
        self._pairs.labels(status.value).inc(n_pairs)
