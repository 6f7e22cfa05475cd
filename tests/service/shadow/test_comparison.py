from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau  # type: ignore[import-untyped]  # it ships none

from service.shadow.comparison import Comparison, compare

SCORES = st.floats(0, 1, width=16)
PAIRS = st.lists(st.tuples(SCORES, SCORES), min_size=1, max_size=12)


def of(pairs: list[tuple[float, float]], min_score: float | None = None) -> Comparison:
    given_scores, shadow = zip(*pairs, strict=True)
    return compare(given_scores, shadow, min_score, ranked=True)


def test_differences_are_the_shadows_score_less_the_given_one() -> None:
    assert of([(0.25, 0.75), (0.5, 0.25)]).differences == (0.5, -0.25)


@given(PAIRS)
def test_without_ties_twice_the_agreement_less_one_is_kendalls_tau(
    pairs: list[tuple[float, float]],
) -> None:
    given_scores, shadow = zip(*pairs, strict=True)
    assume(len(pairs) > 1 and len(set(given_scores)) == len(set(shadow)) == len(pairs))
    agreement = of(pairs).rank_agreement
    assert agreement is not None
    assert 2 * agreement - 1 == pytest.approx(kendalltau(given_scores, shadow).statistic)


@pytest.mark.parametrize(
    ("pairs", "agreement"),
    [
        ([(0.1, 0.1), (0.2, 0.2)], 1.0),
        ([(0.1, 0.2), (0.2, 0.1)], 0.0),
        ([(0.1, 0.5), (0.2, 0.5)], 0.5),
        ([(0.1, 0.1), (0.1, 0.9), (0.2, 0.5)], 0.5),
        ([(0.1, 0.1), (0.1, 0.9)], None),
        ([(0.1, 0.9)], None),
    ],
)
def test_a_tie_of_the_shadow_is_half_and_one_of_the_given_scores_tells_nothing(
    pairs: list[tuple[float, float]], agreement: float | None
) -> None:
    assert of(pairs).rank_agreement == agreement


@pytest.mark.parametrize(
    ("pairs", "same"),
    [
        ([(0.9, 0.2), (0.1, 0.1)], True),
        ([(0.9, 0.1), (0.1, 0.2)], False),
        ([(0.9, 0.1), (0.9, 0.2), (0.1, 0.0)], True),
        ([(0.9, 0.9)], None),
    ],
)
def test_the_first_ad_is_the_same_where_it_is_among_the_first_by_the_given_scores(
    pairs: list[tuple[float, float]], same: bool | None
) -> None:
    assert of(pairs).same_top is same


def test_eligibility_is_kept_gained_or_lost_from_the_score_asked_for_on() -> None:
    found = of([(0.5, 0.5), (0.1, 0.2), (0.4, 0.5), (0.6, 0.1), (0.5, 0.0)], min_score=0.5)
    assert (found.n_kept, found.n_gained, found.n_lost) == (2, 1, 2)


@given(PAIRS, st.none() | SCORES)
def test_every_ad_is_told_of_once(
    pairs: list[tuple[float, float]], min_score: float | None
) -> None:
    found = of(pairs, min_score)
    assert len(found.differences) == len(pairs)
    asked = len(pairs) if min_score is not None else 0
    assert found.n_kept + found.n_gained + found.n_lost == asked


def test_ads_of_several_queries_have_no_order() -> None:
    found = compare([0.1, 0.9], [0.9, 0.1], None, ranked=False)
    assert (found.rank_agreement, found.same_top) == (None, None)
    assert found.differences == (0.8, -0.8)
