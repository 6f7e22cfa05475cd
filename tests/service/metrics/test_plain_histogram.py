from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry, Histogram, generate_latest

from service.metrics.buckets import PAIR_TOKENS, SCORES
from service.metrics.plain_histogram import PlainHistogram


@pytest.mark.parametrize(("buckets", "most"), [(SCORES, 1.0), (PAIR_TOKENS, 600.0)])
def test_the_exposition_is_the_librarys_own_to_the_last_character(
    buckets: tuple[float, ...], most: float
) -> None:
    library, own = CollectorRegistry(), CollectorRegistry()
    expected = Histogram("h", "Of something.", buckets=buckets, registry=library)
    histogram = PlainHistogram("h", "Of something.", buckets, own)
    rng = random.Random(4)  # noqa: S311  # a fixed sequence is wanted
    values = [0.0, most, *buckets, 1e-300, *(most * rng.random() for _ in range(200))]
    histogram.observe(values[:50])
    histogram.observe(values[50:])
    for value in values:
        expected.observe(value)
    assert generate_latest(own) == generate_latest(library)


def test_the_series_exist_before_the_first_value() -> None:
    registry = CollectorRegistry()
    PlainHistogram("h", "Of something.", SCORES, registry)
    assert registry.get_sample_value("h_bucket", {"le": "1.0"}) == 0
