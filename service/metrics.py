"""Prometheus series of the service, and the few lines that feed them.

Base units, millisecond-scale buckets, bounded labels; every series exists before the first
request. README, "Metrics", says which question each one answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)

from service.batching.batch import BatchDone
from service.cache_metrics import CacheCollector
from service.caching.fixed_cache import FixedCache
from service.domain import AdScore, PairStatus, ReloadResult, StageTimes
from service.errors import Unauthorized
from service.process_metrics import ProcessMetrics
from service.score_drift import ScoreDrift
from service.score_histogram import ScoreHistogram

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series each, for no question

# An auction gives us 10-50 ms, so the buckets are densest there; the last ones are for bulk. Usual
# timeouts (10, 20, 30, 50, 100, 200, 300 ms) are edges: the share within them is exact.
SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15,
           0.2, 0.3, 0.5, 1.0, 2.5, 5.0, 10.0)  # fmt: skip
PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512)
TOKENS = (16, 32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384)
COST_RATIOS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
RATIOS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)

STAGES = ("encode", "queue", "inference")
KEY_PROBLEMS = ("missing", "wrong")
CUT_REASONS = ("limit", "slow", "head_too_large", "pipelined")
SHED_REASONS = ("queue_full", "deadline_unreachable", "not_ready")
AUCTION_RESULTS = ("in_time", "late", "partial", "nothing")


class Metrics:
    """All collectors, on one registry. Methods are called from the event loop."""

    def __init__(
        self, registry: CollectorRegistry, routes: Iterable[str], outcomes: Iterable[str]
    ) -> None:
        """Register everything and create each labelled child, so that no series is missing.

        Args:
            registry: Where the collectors go; tests give a fresh one.
            routes: Every value of the label `route`.
            outcomes: Every value of the label `outcome`.
        """
        self.registry = registry
        self.process = ProcessMetrics(registry, SECONDS)
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
        self._requests_in_flight = 0
        Gauge(
            "adrel_requests_in_flight", "Requests that are being answered.", registry=registry
        ).set_function(lambda: self._requests_in_flight)
        self._request_pairs = Histogram(
            "adrel_request_pairs",
            "Pairs that a request asks for, refused requests included.",
            buckets=PAIRS,
            registry=registry,
        )
        self._pairs = Counter(
            "adrel_pairs", "Pairs answered, by status.", ("status",), registry=registry
        )
        self._request_seconds = Histogram(
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
        self._batch_pairs = Histogram(
            "adrel_batch_pairs", "Pairs in a batch.", buckets=PAIRS, registry=registry
        )
        self._batch_tokens = Histogram(
            "adrel_batch_padded_tokens",
            "Padded tokens in a batch: pairs x longest.",
            buckets=TOKENS,
            registry=registry,
        )
        self._batch_seconds = Histogram(
            "adrel_batch_duration_seconds",
            "From the start of a batch to its logits.",
            buckets=SECONDS,
            registry=registry,
        )
        self._padding = Histogram(
            "adrel_padding_ratio",
            "Padding as a share of a batch's padded tokens.",
            buckets=RATIOS,
            registry=registry,
        )
        self._cost_ratio = Histogram(
            "adrel_predicted_over_actual_cost",
            "Predicted seconds of a batch over those that it took.",
            buckets=COST_RATIOS,
            registry=registry,
        )
        self._batch_failures = Counter(
            "adrel_batch_failures", "Batches on which the model failed.", registry=registry
        )
        self._queue_pairs = Gauge(
            "adrel_queue_pairs", "Pairs that wait for a batch now.", registry=registry
        )
        self._queue_seconds = Gauge(
            "adrel_queue_seconds",
            "Predicted seconds until all that waits now has run.",
            registry=registry,
        )
        self._running = Gauge("adrel_batches_in_flight", "Batches that run now.", registry=registry)
        self._workers = Gauge(
            "adrel_inference_workers", "Batches that can run at once.", registry=registry
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
        self._scores = ScoreHistogram()
        registry.register(self._scores)
        self._drift = ScoreDrift(self._scores.counts)
        registry.register(self._drift)
        self._shed = Counter(
            "adrel_shed", "Requests refused at the door, by reason.", ("reason",), registry=registry
        )
        self._unauthorized = Counter(
            "adrel_unauthorized",
            "Requests for any path that were refused for want of a key, or for a wrong one.",
            ("key",),
            registry=registry,
        )
        self._connections = Gauge(
            "adrel_connections", "Connections that are open now.", registry=registry
        )
        self._cut = Counter(
            "adrel_connections_cut",
            "Connections that were turned away or ended for what their peers did.",
            ("reason",),
            registry=registry,
        )
        self._model_info = Gauge(
            "adrel_model_info",
            "1 for the model that serves.",
            ("name", "version", "precision", "provider"),
            registry=registry,
        )
        self._model_loaded = Gauge(
            "adrel_model_loaded_timestamp_seconds",
            "Unix time since which the model serves.",
            registry=registry,
        )
        self._reloads = Counter(
            "adrel_reloads",
            "Reloads of the bundle by result: changed, unchanged, failed or refused.",
            ("result",),
            registry=registry,
        )
        self._caches: CacheCollector | None = None
        # Finding a child by its labels costs more than counting with it.
        self._requests_of = functools.cache(self._requests.labels)
        self._request_seconds_of = functools.cache(self._request_seconds.labels)
        for route in routes:
            self._request_seconds_of(route)
            for outcome in outcomes:
                self._requests_of(route, outcome)
        self._stage_of = {stage: self._stage_seconds.labels(stage) for stage in STAGES}
        self._auction_of = {result: self._auctions.labels(result) for result in AUCTION_RESULTS}
        self._pair_of = {status: self._pairs.labels(status.value) for status in PairStatus}
        for reason in SHED_REASONS:
            self._shed.labels(reason)
        for problem in KEY_PROBLEMS:
            self._unauthorized.labels(problem)
        for reason in CUT_REASONS:
            self._cut.labels(reason)
        for result in ReloadResult:
            self._reloads.labels(result.value)

    def model_serves(
        self, *, name: str, version: str, precision: str, provider: str, since_s: float
    ) -> None:
        """Say which model serves from now on, and no other.

        Args:
            name: Of the model.
            version: Likewise.
            precision: Of its weights.
            provider: Execution provider.
            since_s: Unix time.
        """
        self._model_info.clear()
        self._model_info.labels(name, version, precision, provider).set(1)
        self._model_loaded.set(since_s)

    def workers_are(self, n_workers: int) -> None:
        """Say how many batches can run at once."""
        self._workers.set(n_workers)

    def reload_ended(self, result: ReloadResult) -> None:
        """Record how a reload ended."""
        self._reloads.labels(result.value).inc()

    def watch_queue(
        self,
        queued_pairs: Callable[[], int],
        queued_s: Callable[[], float],
        running: Callable[[], int],
    ) -> None:
        """Read the queue's state whenever the metrics are scraped."""
        self._queue_pairs.set_function(queued_pairs)
        self._queue_seconds.set_function(queued_s)
        self._running.set_function(running)

    def watch_connections(self, n_open: Callable[[], int]) -> None:
        """Read the number of open connections whenever the metrics are scraped."""
        self._connections.set_function(n_open)

    def watch_caches(self, scores: FixedCache, tokens: FixedCache) -> None:
        """Read the caches' counts whenever the metrics are scraped; those of before no longer.

        Args:
            scores: Of pairs.
            tokens: Of texts.
        """
        if self._caches is not None:
            self.registry.unregister(self._caches)
        self._caches = CacheCollector(scores, tokens)
        self.registry.register(self._caches)

    def watch_score_drift(self, reference: Sequence[float], now_s: Callable[[], float]) -> None:
        """Compare the scores from now on with the model's own, whenever the metrics are scraped.

        Args:
            reference: Share of the scores in each of ten equal bins at export.
            now_s: Monotonic seconds.
        """
        self._drift.compare_with(reference, now_s)

    def batch_done(self, batch: BatchDone) -> None:
        """Record one batch."""
        self._batch_pairs.observe(batch.n_pairs)
        self._batch_tokens.observe(batch.padded_tokens)
        self._batch_seconds.observe(batch.inference_s)
        self._padding.observe(1 - batch.tokens / batch.padded_tokens)
        if batch.failed:
            self._batch_failures.inc()
        elif batch.inference_s > 0:
            self._cost_ratio.observe(batch.predicted_s / batch.inference_s)

    def request_started(self) -> None:
        """Record the start of any request of a counted route."""
        self._requests_in_flight += 1

    def request_done(self, route: str, outcome: str, duration_s: float, n_pairs: int = 0) -> None:
        """Record the end of a request that was started.

        Args:
            route: One of those given at the start.
            outcome: Likewise.
            duration_s: From its start.
            n_pairs: Asked for; 0 where the request was not understood.
        """
        self._requests_in_flight -= 1
        if n_pairs:
            self._request_pairs.observe(n_pairs)
        self._requests_of(route, outcome).inc()
        self._request_seconds_of(route).observe(duration_s)
        if outcome in SHED_REASONS:
            self._shed.labels(outcome).inc()

    def request_unauthorized(self, route: str | None, has_key: bool) -> None:
        """Record a request that was refused before it was read.

        Args:
            route: Where it is one of the counted ones.
            has_key: It had a key, which was wrong.
        """
        self._unauthorized.labels("wrong" if has_key else "missing").inc()
        if route is not None:
            self._requests.labels(route, Unauthorized.code).inc()

    def connection_cut(self, reason: str) -> None:
        """Record a connection that was ended by us, for one of `CUT_REASONS`."""
        self._cut.labels(reason).inc()

    def auction_done(self, result: str) -> None:
        """Record what an auction got: one of `AUCTION_RESULTS`."""
        self._auction_of[result].inc()

    def request_scored(
        self, scores: Iterable[AdScore], times: StageTimes, slack_s: float, *, probe: bool = False
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
        for ad in scores:
            self._pair_of[ad.status].inc()
            if probe:
                continue
            if ad.truncated:
                self._truncated.inc()
            if ad.score is not None:
                self._scores.observe(ad.score)

    def pairs_lost(self, status: PairStatus, n_pairs: int) -> None:
        """Record the pairs of a request that ended without any score."""
        self._pairs.labels(status.value).inc(n_pairs)
