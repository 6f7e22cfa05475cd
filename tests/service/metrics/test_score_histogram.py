from __future__ import annotations

import random

from prometheus_client import CollectorRegistry, Histogram, generate_latest

from service.metrics.score_histogram import BOUNDS, ScoreHistogram


def test_the_exposition_is_the_librarys_own_to_the_last_character() -> None:
    library, ours = CollectorRegistry(), CollectorRegistry()
    expected = Histogram(
        "adrel_score", "Calibrated scores given.", buckets=BOUNDS, registry=library
    )
    histogram = ScoreHistogram()
    ours.register(histogram)
    rng = random.Random(4)  # noqa: S311  # a fixed sequence is wanted
    scores = [0.0, 1.0, 0.1, 0.5, 1e-300, *(rng.random() for _ in range(200))]
    histogram.observe(scores[:50])
    histogram.observe(scores[50:])
    for score in scores:
        expected.observe(score)
    assert generate_latest(ours) == generate_latest(library)


def test_the_series_exist_before_the_first_score() -> None:
    registry = CollectorRegistry()
    registry.register(ScoreHistogram())
    assert registry.get_sample_value("adrel_score_bucket", {"le": "1.0"}) == 0
