from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model_export import metrics, ranking_metrics
from model_export.evaluation.bootstrap import Floats, compare
from model_export.evaluation.figures import FIGURES, Truth, statistics_of
from model_export.pairs import LabelledPair
from service.domain import Ad

K = 3

judged = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 6)), min_size=2, max_size=30
)
"""(query, grade, score in sixths of 1): few different ones, so that there are ties."""


def arrays(rows: list[tuple[int, int, int]]) -> tuple[Truth, Floats]:
    queries, grades, scores = (
        np.array(column, dtype=np.float64) for column in zip(*rows, strict=True)
    )
    return Truth((grades >= 2).astype(np.float64), grades, queries.tolist()), (scores + 1) / 8


def plain_figures(truth: Truth, scores: Floats) -> dict[str, float]:
    """Written without the bootstrap."""
    groups = truth.query_of_pair.tolist()

    def mean(values: Floats) -> float:
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else float("nan")

    return {
        "auc": metrics.auc(truth.labels, scores),
        "ndcg": ranking_metrics.ndcg_at_k(groups, truth.gains, scores, K),
        "mrr": mean(ranking_metrics.by_query(
            ranking_metrics.reciprocal_rank, groups, truth.labels, scores)),
        "map": mean(ranking_metrics.by_query(
            ranking_metrics.average_precision, groups, truth.labels, scores)),
        "average_precision": ranking_metrics.average_precision(truth.labels, scores),
        "calibration_error": metrics.expected_calibration_error(truth.labels, scores),
        "brier": metrics.brier(truth.labels, scores),
        "log_loss": metrics.log_loss(truth.labels, scores),
    }  # fmt: skip


@given(judged)
def test_the_figures_of_the_file_are_those_of_the_plain_formulas(
    rows: list[tuple[int, int, int]],
) -> None:
    truth, scores = arrays(rows)
    statistics = statistics_of(truth, scores, K, are_probabilities=True)
    as_it_is = np.ones((1, truth.n_queries))
    values = {name: float(statistic(as_it_is)[0]) for name, statistic in statistics.items()}
    assert values == pytest.approx(plain_figures(truth, scores), nan_ok=True)


@given(judged, st.lists(st.integers(0, 2), min_size=4, max_size=4))
def test_a_query_that_counts_twice_is_like_two_queries(
    rows: list[tuple[int, int, int]], times: list[int]
) -> None:
    truth, scores = arrays(rows)
    counts = np.array([times[: truth.n_queries]], dtype=np.float64)
    repeated = [
        ((query, copy), label, gain, score)
        for query, label, gain, score in zip(
            truth.query_of_pair.tolist(), truth.labels, truth.gains, scores, strict=True
        )
        for copy in range(times[query])
    ]
    if not repeated:
        return
    names, labels, gains, many_scores = zip(*repeated, strict=True)
    expected = plain_figures(Truth(np.array(labels), np.array(gains), names), np.array(many_scores))
    statistics = statistics_of(truth, scores, K, are_probabilities=True)
    for name, statistic in statistics.items():
        if name != "calibration_error":  # whose bins stay those of the whole file
            value = float(statistic(counts)[0])
            assert value == pytest.approx(expected[name], nan_ok=True), name


def test_the_calibration_error_of_a_resample_keeps_the_bins_of_the_file() -> None:
    truth = Truth(np.array([1.0, 1.0, 0.0]), np.zeros(3), ["a", "b", "c"])
    statistics = statistics_of(truth, np.array([0.9, 0.6, 0.2]), K, are_probabilities=True)
    twice_a = statistics["calibration_error"](np.array([[2.0, 1.0, 0.0]]))
    assert twice_a.tolist() == pytest.approx([(2 * 0.1 + 0.4) / 3])


def test_scores_that_are_no_probabilities_are_not_judged_as_such() -> None:
    truth, scores = arrays([(0, 3, 5), (0, 0, 1)])
    ranking = {figure.name for figure in FIGURES if figure.kind == "ranking"}
    assert set(statistics_of(truth, scores * 9, K, are_probabilities=False)) == ranking
    everything = statistics_of(truth, scores, K, are_probabilities=True)
    assert list(everything) == [figure.name for figure in FIGURES]


def test_pairs_of_a_query_share_its_number_and_a_part_numbers_anew() -> None:
    ad = Ad("1", text="ad")
    pairs = [LabelledPair(query, ad, label) for query, label in (("b", 1), ("a", 0), ("b", 0.6))]
    truth = Truth.of(pairs)
    assert truth.query_of_pair.tolist() == [0, 1, 0]
    assert truth.relevant.tolist() == [True, False, True]
    part = truth.part(np.array([False, True, False]))
    assert (part.query_of_pair.tolist(), part.n_queries) == ([0], 1)


def test_a_thousand_resamples_of_a_thousand_pairs_take_less_than_two_seconds() -> None:
    rng = np.random.default_rng(0)
    grades = rng.integers(0, 4, 1000).astype(np.float64)
    queries = rng.integers(0, 300, 1000).tolist()
    truth = Truth((grades >= 2).astype(np.float64), grades, queries)
    statistics = statistics_of(truth, rng.random(1000), 10, are_probabilities=True)
    started_s = time.process_time()  # not the neighbours' time
    compare([statistics], truth.n_queries, len(truth), 1000, seed=0)
    assert time.process_time() - started_s < 2


def test_every_figure_stands_in_the_readme() -> None:
    readme = (Path(__file__).parents[3] / "model_export" / "README.md").read_text(encoding="utf-8")
    explained = readme.partition("| figure | |")[2].partition("\n\n")[0]
    assert [figure.title for figure in FIGURES if figure.title not in explained] == []
