from __future__ import annotations

from model_export.calibration_fit import CalibrationFigures, CalibrationFit, Candidate
from model_export.calibration_words import reasons_of
from service.scoring.calibration import Identity, Platt, ScoreCalibration, Temperature

IDENTITY = Identity()
TEMPERATURE = Temperature(temperature=2.0, fitted_on="x")
PLATT = Platt(slope=0.5, intercept=-1.0, fitted_on="x")


def candidate(
    one: ScoreCalibration, loss: float, error: float, *, held_out: bool = True, behind: float = 0.0
) -> Candidate:
    """Its ECE is `error` in sample and held out; by chance it would be up to 0.05."""
    figures = CalibrationFigures(log_loss=loss, brier=0.2, calibration_error=error)
    if not held_out:
        return Candidate(one, figures, 0.05, None, None, None)
    return Candidate(one, figures, 0.05, figures, behind, 0.01)


WITHOUT = candidate(IDENTITY, 0.445, 0.087, behind=0.02)


def test_figures_before_and_after_and_a_simpler_map_of_the_wrong_shape_are_named() -> None:
    simpler = candidate(TEMPERATURE, 0.438, 0.058, behind=0.005)
    fit = CalibrationFit(PLATT, (WITHOUT, simpler, candidate(PLATT, 0.442, 0.042)), 5, None)
    assert reasons_of(fit, 932, 304) == [
        "932 pairs of 304 queries, held out in 5 folds: log loss 0.445 -> 0.442, "
        "ECE 0.087 -> 0.042",
        "as good in log loss and simpler, but of the wrong shape: temperature (ECE 0.058 in "
        "sample, by chance up to 0.050)",
    ]


def test_a_map_that_was_simply_the_simplest_good_one_is_said_to_be_it() -> None:
    worse = candidate(TEMPERATURE, 0.47, 0.058, behind=0.03)
    fit = CalibrationFit(PLATT, (WITHOUT, worse, candidate(PLATT, 0.44, 0.04)), 5, None)
    assert reasons_of(fit, 40, 20)[1:] == [
        "platt is the simplest that is within a standard error of the best"
    ]
    like_none = candidate(TEMPERATURE, 0.445, 0.058)
    fit = CalibrationFit(PLATT, (WITHOUT, like_none, candidate(PLATT, 0.44, 0.04)), 5, None)
    assert "simplest" in reasons_of(fit, 40, 20)[1], "what is no better than none was never good"
    shapeless = candidate(PLATT, 0.44, 0.06)
    fit = CalibrationFit(PLATT, (WITHOUT, shapeless), 5, None)
    assert "simplest" in reasons_of(fit, 40, 20)[1], "it went before none for its shape"


def test_no_map_is_explained_too() -> None:
    fit = CalibrationFit(IDENTITY, (WITHOUT, candidate(PLATT, 0.45, 0.04)), 5, None)
    assert reasons_of(fit, 40, 20) == [
        "40 pairs of 20 queries: no map is better than none on queries that it has not seen "
        "(log loss 0.445, ECE 0.087)"
    ]


def test_pairs_of_one_query_give_figures_in_sample() -> None:
    both = (
        candidate(IDENTITY, 0.5, 0.1, held_out=False),
        candidate(PLATT, 0.4, 0.05, held_out=False),
    )
    assert reasons_of(CalibrationFit(PLATT, both, 0, None), 200, 1) == [
        "200 pairs of 1 query: too few queries to hold some out; platt untested, in sample "
        "log loss 0.500 -> 0.400, ECE 0.100 -> 0.050"
    ]
