from __future__ import annotations

from service.batching.batch import BatchDone
from tests.service.metrics.conftest import made, value


def test_a_batch_is_counted_with_its_padding() -> None:
    metrics = made()
    lengths = [20, 20, 25, 25]
    metrics.batches.done(BatchDone(lengths, 100, predicted_s=0.03, inference_s=0.02, failed=False))
    assert value(metrics, "adrel_batch_pairs_sum") == 4
    assert value(metrics, "adrel_batch_padded_tokens_sum") == 100
    assert value(metrics, "adrel_pair_tokens_sum") == 90
    assert value(metrics, "adrel_pair_tokens_bucket", le="24.0") == 2
    assert value(metrics, "adrel_pair_tokens_bucket", le="32.0") == 4
    padding = value(metrics, "adrel_padding_ratio_sum")
    assert padding is not None
    assert round(padding, 6) == 0.1
    assert value(metrics, "adrel_batch_failures_total") == 0
    assert value(metrics, "adrel_predicted_over_actual_cost_sum") == 1.5


def test_a_failed_batch_says_nothing_of_the_prediction() -> None:
    metrics = made()
    metrics.batches.done(BatchDone([25], 25, predicted_s=0.03, inference_s=0.01, failed=True))
    assert value(metrics, "adrel_batch_failures_total") == 1
    assert value(metrics, "adrel_predicted_over_actual_cost_count") == 0


def test_the_queue_is_read_when_the_metrics_are_scraped() -> None:
    metrics = made()
    waiting = [3]
    metrics.batches.watch_queue(lambda: waiting[0], lambda: waiting[0] / 10, lambda: 1)
    assert value(metrics, "adrel_queue_seconds") == 0.3
    assert value(metrics, "adrel_queue_pairs") == 3
    waiting[0] = 7
    assert value(metrics, "adrel_queue_pairs") == 7
    assert value(metrics, "adrel_batches_in_flight") == 1
