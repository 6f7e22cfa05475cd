"""Series of the batches: what the model was given, how well its cost was foretold, what waits."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from service.batching.batch import BatchDone
from service.metrics.buckets import COST_RATIOS, PAIR_TOKENS, PAIRS, RATIOS, SECONDS, TOKENS
from service.metrics.plain_histogram import PlainHistogram


class BatchMetrics:
    """Fed once a batch; the queue is read when it is scraped."""

    def __init__(self, registry: CollectorRegistry) -> None:
        """Register everything.

        Args:
            registry: Where the collectors go.
        """
        self._pairs = Histogram(
            "adrel_batch_pairs", "Pairs in a batch.", buckets=PAIRS, registry=registry
        )
        self._tokens = Histogram(
            "adrel_batch_padded_tokens",
            "Padded tokens in a batch: pairs x longest.",
            buckets=TOKENS,
            registry=registry,
        )
        self._pair_tokens = PlainHistogram(
            "adrel_pair_tokens",
            "Tokens of a pair that came to the model, special ones included.",
            PAIR_TOKENS,
            registry,
        )
        self._seconds = Histogram(
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
        self._failures = Counter(
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

        self._splits = Counter(
            "adrel_batch_splits",
            "Batches, or halves of them, that were run again in halves for want of memory.",
            registry=registry,
        )
        self._budget = Gauge(
            "adrel_batch_token_budget",
            "Most padded tokens of a batch now; less for a while after memory ran out.",
            registry=registry,
        )
        self._stuck_workers = Gauge(
            "adrel_stuck_workers",
            "Inference threads in a batch that does not end.",
            registry=registry,
        )

    def workers_are(self, n_workers: int) -> None:
        """Say how many batches can run at once."""
        self._workers.set(n_workers)

    def watch_budget(self, budget_tokens: Callable[[], int]) -> None:
        """Ask how large a batch may be whenever the metrics are scraped."""
        self._budget.set_function(budget_tokens)

    def watch_stuck_workers(self, stuck_workers: Callable[[], int]) -> None:
        """Ask how many are stuck whenever the metrics are scraped."""
        self._stuck_workers.set_function(stuck_workers)

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

    def done(self, batch: BatchDone) -> None:
        """Record one batch."""
        self._pairs.observe(batch.n_pairs)
        self._tokens.observe(batch.padded_tokens)
        self._pair_tokens.observe(batch.lengths_tokens)
        self._seconds.observe(batch.inference_s)
        self._padding.observe(1 - batch.tokens / batch.padded_tokens)
        if batch.failed:
            self._failures.inc()
        self._splits.inc(batch.splits)
        if not batch.failed and not batch.splits and batch.inference_s > 0:
            self._cost_ratio.observe(batch.predicted_s / batch.inference_s)
