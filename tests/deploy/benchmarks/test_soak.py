from __future__ import annotations

import pytest

from deploy.benchmarks.bench_soak import growth_of, judge
from deploy.benchmarks.load_client import Exchange


def test_growth_is_of_the_last_quarter_over_the_second() -> None:
    filling, steady, later = [100.0, 150.0], [200.0, 200.0], [900.0, 900.0]
    assert growth_of([*filling, *steady, *later, 210.0, 210.0]) == pytest.approx(0.05)
    assert growth_of([*filling, *steady, *later, 200.0, 200.0]) == 0


def test_a_wrong_request_must_be_refused_and_every_other_one_get_an_answer() -> None:
    exchanges = [
        Exchange(0, 0.0, 0.010, 200, b""),
        Exchange(1, 0.0, 0.001, 422, b""),
        Exchange(2, 0.0, 0.020, 422, b""),
        Exchange(3, 0.0, 0.030, 200, b""),
        Exchange(4, 0.0, 0.001, 429, b""),
        Exchange(5, 0.0, 0.001, 0, b""),
    ]
    row = judge(exchanges, wrong=frozenset({1, 3}))
    assert row["surprises"] == 3
    assert row["outcomes"] == {"0": 1, "200": 2, "422": 2, "429": 1}
    assert row["p50_ms"] == pytest.approx(10)
