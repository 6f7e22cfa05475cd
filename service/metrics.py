"""Prometheus series of the service, and the few lines that feed them.

Base units, millisecond-scale buckets, bounded labels; every series exists before the first
request. README, "Metrics", says which question each one answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
)
from prometheus_client.gc_collector import GCCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector

from service.batching.batcher import BatchDone
from service.cache_metrics import CacheCollector
from service.caching.fixed_cache import FixedCache
from service.domain import AdScore, PairStatus, StageTimes
from service.score_histogram import ScoreHistogram

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series each, for no question

# An auction gives us 10-50 ms, so the buckets are densest there; the last ones are for bulk.
SECONDS = (0.001, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15,
           0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # fmt: skip
PAIRS = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256)
TOKENS = (16, 32, 64, 128, 256, 384, 512, 768, 1024, 2048, 4096, 8192, 16384)
COST_RATIOS = (0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
RATIOS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75)

STAGES = ("encode", "queue", "inference")
SHED_REASONS = ("queue_full", "deadline_unreachable", "not_ready")


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
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._requests = Counter(
            "adrel_requests",
            "Requests by route and outcome: ok, partial, or the code of the error.",
            ("route", "outcome"),
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
        self._shed = Counter(
            "adrel_shed", "Requests refused at the door, by reason.", ("reason",), registry=registry
        )
        self._model_info = Gauge(
            "adrel_model_info",
            "1 for the model that serves.",
            ("name", "version", "precision", "provider"),
            registry=registry,
        )
        for route in routes:
            self._request_seconds.labels(route)
            for outcome in outcomes:
                self._requests.labels(route, outcome)
        for stage in STAGES:
            self._stage_seconds.labels(stage)
        self._pair_of = {status: self._pairs.labels(status.value) for status in PairStatus}
        for reason in SHED_REASONS:
            self._shed.labels(reason)

    def model_serves(
        self, *, name: str, version: str, precision: str, provider: str, workers: int
    ) -> None:
        """Say which model serves, where, and on how many workers."""
        self._model_info.labels(name, version, precision, provider).set(1)
        self._workers.set(workers)

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

    def watch_caches(
        self, scores: FixedCache, tokens: FixedCache, joined: Callable[[], int]
    ) -> None:
        """Read the caches' counts whenever the metrics are scraped.

        Args:
            scores: Of pairs.
            tokens: Of texts.
            joined: Pairs so far that were in flight for somebody else already.
        """
        self.registry.register(CacheCollector(scores, tokens, joined))

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

    def request_done(self, route: str, outcome: str, duration_s: float) -> None:
        """Record the end of any request of a counted route."""
        self._requests.labels(route, outcome).inc()
        self._request_seconds.labels(route).observe(duration_s)
        if outcome in SHED_REASONS:
            self._shed.labels(outcome).inc()

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
        self._stage_seconds.labels("encode").observe(times.encode_s)
        self._stage_seconds.labels("queue").observe(times.queue_s)
        self._stage_seconds.labels("inference").observe(times.inference_s)
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
