from __future__ import annotations

import math

from deploy.benchmarks.bench_workers import _summary


def figures(pairs_per_s: float, cpu_ms: float) -> dict[str, float]:
    return {"pairs_per_s": pairs_per_s, "cpu_ms_per_request": cpu_ms, "failed": 0.0}


def test_the_ratio_is_the_median_of_the_rounds_own_not_of_their_medians() -> None:
    rounds = [
        {"one process": figures(100, 2), "workers": figures(150, 3)},
        {"one process": figures(10, 20), "workers": figures(20, 30)},
        {"one process": figures(50, 4), "workers": figures(60, 6)},
    ]
    summary = _summary(rounds)
    assert summary["ratios"] == {"pairs_per_s": 1.5, "cpu_ms_per_request": 1.5}
    assert summary["one process"]["pairs_per_s"] == 50
    assert summary["workers"]["pairs_per_s"] == 60


def test_a_round_without_an_answer_has_no_ratio() -> None:
    summary = _summary([{"one process": figures(0, 2), "workers": figures(150, 3)}])
    assert math.isnan(summary["ratios"]["pairs_per_s"])
