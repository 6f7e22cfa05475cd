from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.calibration_fit import CalibrationFigures, Candidate
from model_export.errors import ExportError, RelevanceReversed
from model_export.fit_calibration import _choose, fit_score_calibration
from model_export.metrics import log_loss
from service.scoring.calibration import (
    Beta,
    Identity,
    Isotonic,
    LinearSpline,
    Platt,
    ScoreCalibration,
    Temperature,
    sigmoid,
)

SHIFTED = Platt(slope=0.4, intercept=-1.0, fitted_on="truth")
BENT = LinearSpline(
    knot_margins=(-0.9, 0.9),
    knot_log_odds=(-0.2, 0.2),
    slope_below=1.5,
    slope_above=1.5,
    fitted_on="truth",
)
STEPS = Isotonic(
    knot_margins=(-4.0, -2.0, -1.8, 1.8, 2.0, 4.0),
    knot_log_odds=(-3.0, -2.8, -0.2, 0.2, 2.8, 3.0),
    slope_below=0.1,
    slope_above=0.1,
    fitted_on="truth",
)


def simulated(
    truth: ScoreCalibration, n_pairs: int = 6000, pairs_per_query: int = 4
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    rng = np.random.default_rng(1)
    margins = rng.normal(0, 2, n_pairs)
    labels = (rng.random(n_pairs) < sigmoid(truth.to_log_odds(margins))).astype(np.float64)
    return margins, labels, [f"query {i // pairs_per_query}" for i in range(n_pairs)]


def cross_validated(candidate: Candidate) -> CalibrationFigures:
    assert candidate.cross_validated is not None
    return candidate.cross_validated


@pytest.mark.parametrize(
    ("truth", "methods"),
    [
        (Temperature(temperature=3.0, fitted_on="truth"), ("temperature",)),
        (SHIFTED, ("platt",)),
        (Beta(a=0.3, b=1.5, c=-0.5, fitted_on="truth"), ("beta",)),
        (BENT, ("linear_spline",)),
        (STEPS, ("isotonic",)),
    ],
    ids=["temperature", "platt", "beta", "linear_spline", "isotonic"],
)
def test_the_kind_of_map_that_made_the_labels_is_chosen(
    truth: ScoreCalibration, methods: tuple[str, ...]
) -> None:
    fit = fit_score_calibration(*simulated(truth), "simulation")
    assert fit.calibration.method in methods
    assert fit.calibration.fitted_on == "simulation"
    grid = np.linspace(-4, 4, 81)
    found, expected = (sigmoid(one.to_log_odds(grid)) for one in (fit.calibration, truth))
    assert np.abs(found - expected).mean() < 0.02


def test_a_known_temperature_is_found_again() -> None:
    truth = Temperature(temperature=2.5, fitted_on="truth")
    found = fit_score_calibration(*simulated(truth), "simulation").calibration
    assert isinstance(found, Temperature)
    assert found.temperature == pytest.approx(2.5, rel=0.05)


def test_logits_that_mean_what_they_say_are_left_nearly_as_they_are() -> None:
    fit = fit_score_calibration(*simulated(Identity()), "simulation")
    assert fit.calibration.method in ("identity", "temperature")
    margins = np.linspace(-4, 4, 9)
    assert fit.calibration.to_log_odds(margins) == pytest.approx(margins, rel=0.05)


@pytest.mark.parametrize(
    ("behind_best", "error", "expected"),
    [(0.0, 0.0, True), (0.009, 0.01, True), (0.011, 0.01, False), (None, None, False)],
)
def test_as_good_as_best_is_within_one_standard_error(
    behind_best: float | None, error: float | None, expected: bool
) -> None:
    figures = CalibrationFigures(log_loss=0.5, brier=0.2, calibration_error=0.1)
    candidate = Candidate(Identity(), figures, 0.1, figures, behind_best, error)
    assert candidate.is_as_good_as_best is expected


def test_the_error_of_a_gain_counts_queries_and_not_pairs() -> None:
    # The same pairs four times: as other queries they are more evidence, in their query they are
    # not.
    margins, labels, queries = simulated(SHIFTED, n_pairs=400, pairs_per_query=1)
    again = (np.tile(margins, 4), np.tile(labels, 4))
    in_query = fit_score_calibration(*again, queries * 4, "x").before.behind_best_error
    apart = fit_score_calibration(
        *again, [f"{query} {copy}" for copy in range(4) for query in queries], "x"
    ).before.behind_best_error
    assert in_query is not None
    assert apart is not None
    assert in_query == pytest.approx(2 * apart, rel=0.1)


def test_the_identity_has_no_privilege_over_a_map_that_is_better() -> None:
    # 24 queries that differ much: the gain is clear, its error over queries is large.
    rng = np.random.default_rng(5)
    queries = np.repeat(np.arange(24), 25)
    margins = rng.normal(0, 1.8, 600)
    moods = rng.normal(0, 1.5, 24)[queries]
    labels = (rng.random(600) < sigmoid(margins - 0.8 + moods)).astype(np.float64)
    fit = fit_score_calibration(margins, labels, [str(q) for q in queries], "moody queries")
    assert fit.before.is_as_good_as_best
    assert fit.calibration.method != "identity"
    assert cross_validated(fit.after).log_loss < cross_validated(fit.before).log_loss


@pytest.mark.parametrize(
    ("in_sample", "chance", "expected"), [(0.05, 0.05, True), (0.06, 0.05, False)]
)
def test_a_map_has_the_shape_where_its_error_may_be_chance(
    in_sample: float, chance: float, expected: bool
) -> None:
    figures = CalibrationFigures(log_loss=0.5, brier=0.2, calibration_error=in_sample)
    assert Candidate(Identity(), figures, chance, None, None, None).has_the_shape is expected


def chosen_of(*rows: tuple[ScoreCalibration, float, float]) -> ScoreCalibration:
    """Of maps with a calibration error in sample and so many nats behind the best, +- 0.01.

    Chance alone gives an error of 0.05.
    """
    candidates = []
    for one, error, behind in rows:
        figures = CalibrationFigures(log_loss=0.5, brier=0.2, calibration_error=error)
        candidates.append(Candidate(one, figures, 0.05, figures, behind, 0.01))
    losses = [np.full(4, 0.5 + behind) for _, _, behind in rows]
    return candidates[_choose(candidates, losses)].calibration


def test_of_good_maps_the_simplest_that_misses_by_no_more_than_chance_is_chosen() -> None:
    identity = (Identity(), 0.1, 0.02)
    temperature = (Temperature(temperature=2.0, fitted_on="x"), 0.06, 0.012)
    platt, beta = (SHIFTED, 0.06, 0.0), (Beta(a=1, b=1, c=0, fitted_on="x"), 0.05, 0.02)
    bent, steps = (BENT, 0.05, 0.009), (STEPS, 0.01, 0.005)
    assert chosen_of(identity, temperature, platt, beta, bent, steps) == BENT
    assert chosen_of(identity, (SHIFTED, 0.05, 0.0), bent, steps) == SHIFTED
    assert chosen_of(identity, platt, (BENT, 0.06, 0.0)) == SHIFTED, "neither: the simpler one"
    assert chosen_of((Identity(), 0.1, 0.004), platt, bent) == SHIFTED, "worse than none"


def test_a_map_that_does_worse_than_none_on_other_queries_is_not_chosen() -> None:
    rng = np.random.default_rng(0)
    margins = rng.normal(0, 2, 40)
    labels = (rng.random(40) < sigmoid(margins)).astype(np.float64)
    fit = fit_score_calibration(margins, labels, [str(i) for i in range(40)], "few")
    losses = [cross_validated(candidate).log_loss for candidate in fit.candidates]
    assert losses[0] == min(losses), "this draw is one where no map helps"
    assert fit.calibration.method == "identity"


def test_figures_before_and_after_are_of_the_identity_and_of_the_chosen_map() -> None:
    margins, labels, queries = simulated(SHIFTED)
    fit = fit_score_calibration(margins, labels, queries, "simulation")
    assert [c.calibration.method for c in fit.candidates] == [
        "identity", "temperature", "platt", "beta", "linear_spline", "isotonic",
    ]  # fmt: skip
    assert fit.n_folds == 5
    assert fit.after.calibration == fit.calibration
    before, after = sigmoid(margins), sigmoid(fit.calibration.to_log_odds(margins))
    assert fit.before.in_sample.log_loss == pytest.approx(log_loss(labels, before))
    assert fit.after.in_sample.log_loss == pytest.approx(log_loss(labels, after))
    assert fit.after.in_sample.brier == pytest.approx(((after - labels) ** 2).mean())
    for name in ("log_loss", "brier", "calibration_error"):
        figures = [getattr(cross_validated(c), name) for c in (fit.after, fit.before)]
        assert figures[0] < figures[1]
    assert fit.held_out_scores is not None
    held_out_loss = log_loss(labels, fit.held_out_scores)  # of one deal: figures are of five
    assert held_out_loss == pytest.approx(cross_validated(fit.after).log_loss, rel=1e-3)
    assert held_out_loss > fit.after.in_sample.log_loss


def test_out_of_fold_figures_are_not_the_flattering_ones() -> None:
    fit = fit_score_calibration(*simulated(SHIFTED, n_pairs=300), "simulation")
    held_out, in_sample = cross_validated(fit.before), fit.before.in_sample
    assert held_out.log_loss == pytest.approx(in_sample.log_loss), "nothing was fitted"
    for candidate in fit.candidates[1:]:
        assert cross_validated(candidate).log_loss > candidate.in_sample.log_loss
    isotonic = fit.candidates[-1]
    assert cross_validated(isotonic).log_loss > isotonic.in_sample.log_loss + 0.01


def test_what_a_query_says_about_itself_is_not_held_for_knowledge() -> None:
    # All pairs of a query have one margin and one label, drawn without regard to the margin:
    # only a map that has seen the query itself can profit from it.
    rng = np.random.default_rng(6)
    margins = np.repeat(rng.normal(0, 2, 100), 6)
    labels = np.repeat((rng.random(100) < sigmoid(0.5 * margins[::6])).astype(np.float64), 6)
    by_query = fit_score_calibration(margins, labels, [str(i // 6) for i in range(600)], "x")
    by_pair = fit_score_calibration(margins, labels, [str(i) for i in range(600)], "x")
    honest, leaking = (cross_validated(fit.candidates[-1]) for fit in (by_query, by_pair))
    assert honest.log_loss > leaking.log_loss + 0.02


def test_identical_runs_give_identical_numbers_in_any_order_of_the_file() -> None:
    margins, labels, queries = simulated(SHIFTED, n_pairs=400)
    fit = fit_score_calibration(margins, labels, queries, "simulation")
    assert fit == fit_score_calibration(margins, labels, queries, "simulation")
    order = np.random.default_rng(7).permutation(400)
    other = fit_score_calibration(
        margins[order], labels[order], [queries[i] for i in order], "simulation"
    )
    assert other.calibration.method == fit.calibration.method
    for mine, theirs in zip(fit.candidates, other.candidates, strict=True):
        assert cross_validated(mine).log_loss == pytest.approx(cross_validated(theirs).log_loss)


def test_pairs_of_a_single_query_get_platts_map_untested() -> None:
    margins, labels, _ = simulated(SHIFTED, n_pairs=400)
    fit = fit_score_calibration(margins, labels, ["shoes"] * 400, "one query")
    assert isinstance(fit.calibration, Platt)
    assert fit.n_folds == 0
    assert fit.after.cross_validated is None
    assert fit.held_out_scores is None
    assert fit.rows() == []
    assert fit.figures()["after"]["cross_validated"] is None
    assert fit.after.in_sample.log_loss < fit.before.in_sample.log_loss


def test_soft_labels_are_shares_of_relevance_that_the_scores_meet() -> None:
    margins, _, queries = simulated(SHIFTED, n_pairs=2000)
    soft = np.round(3 * sigmoid(SHIFTED.to_log_odds(margins))) / 3  # of three raters
    assert 100 < (soft > 0.5).sum() < 1900
    fit = fit_score_calibration(margins, soft, queries, "three raters")
    scores = sigmoid(fit.calibration.to_log_odds(margins))
    assert scores.mean() == pytest.approx(soft.mean(), abs=0.01)
    cut = (soft > 0.5).mean()
    assert abs(cut - soft.mean()) > 0.05, "the labels cut at a half are met by other scores"


def test_the_figures_are_plain_json_before_and_after() -> None:
    fit = fit_score_calibration(*simulated(SHIFTED, n_pairs=400), "simulation")
    figures = json.loads(json.dumps(fit.figures(), allow_nan=False))
    assert (figures["method"], figures["n_folds"]) == (fit.calibration.method, 5)
    for side, candidate in (("before", fit.before), ("after", fit.after)):
        assert figures[side]["in_sample"]["brier"] == candidate.in_sample.brier
        assert figures[side]["cross_validated"]["log_loss"] == cross_validated(candidate).log_loss


def test_the_table_has_a_row_for_each_kind_and_one_is_chosen() -> None:
    fit = fit_score_calibration(*simulated(SHIFTED, n_pairs=400), "simulation")
    rows = fit.rows()
    assert [row["method"] for row in rows] == [c.calibration.method for c in fit.candidates]
    assert [row["method"] for row in rows if row["chosen"]] == [fit.calibration.method]
    assert [row["ece"] for row in rows] == [
        cross_validated(candidate).calibration_error for candidate in fit.candidates
    ]


def test_too_few_pairs_of_one_class_are_refused_with_the_counts() -> None:
    with pytest.raises(ExportError, match="got 3 relevant and 20 others"):
        fit_score_calibration(np.arange(23.0), [1] * 3 + [0] * 20, ["q"] * 23, "few")


def test_ten_pairs_of_each_class_are_enough() -> None:
    margins = np.concatenate([np.linspace(-2, 1, 10), np.linspace(-1, 2, 10)])
    labels, queries = [0.0] * 10 + [1.0] * 10, [str(i) for i in range(20)]
    assert fit_score_calibration(margins, labels, queries, "few").n_folds == 5
    with pytest.raises(ExportError, match="got 10 relevant and 9 others"):
        fit_score_calibration(margins[1:], labels[1:], queries[1:], "fewer")


@pytest.mark.parametrize("separable", [False, True])
def test_logits_that_fall_with_relevance_are_refused(separable: bool) -> None:
    margins, labels, queries = simulated(SHIFTED, n_pairs=400)
    if separable:
        labels = (margins > 0).astype(np.float64)
    with pytest.raises(ExportError, match="which label means relevant"):
        fit_score_calibration(-margins, labels, queries, "upside down")


def test_logits_that_are_all_equal_are_refused() -> None:
    queries = [str(i) for i in range(40)]
    with pytest.raises(RelevanceReversed, match=r"AUC 0\.50, .* the logit 0\)"):
        fit_score_calibration(np.full(40, 0.1), [0.0, 1.0] * 20, queries, "constant")


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e7])
def test_margins_that_are_no_log_odds_are_refused(bad: float) -> None:
    margins, labels, queries = simulated(SHIFTED, n_pairs=400)
    margins[7] = bad
    with pytest.raises(ExportError, match="1 margins that are not finite"):
        fit_score_calibration(margins, labels, queries, "broken")


@pytest.mark.parametrize("bad", [1.5, -0.1, np.nan])
def test_labels_outside_zero_to_one_are_refused(bad: float) -> None:
    margins, labels, queries = simulated(SHIFTED, n_pairs=400)
    labels[7] = bad
    with pytest.raises(ExportError, match="labels in 0-1"):
        fit_score_calibration(margins, labels, queries, "broken")


def test_as_many_labels_and_queries_as_margins_are_needed() -> None:
    with pytest.raises(ValueError, match="2 margins, 2 labels, 1 groups"):
        fit_score_calibration([1.0, 2.0], [0, 1], ["q"], "short")
