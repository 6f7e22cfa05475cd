from __future__ import annotations

import pytest

from service.client import Ad, AdResult, AdStatus, ScoreResult
from service.client.fallback import with_fallback
from service.client.wire import Ask
from tests.service.client.stand_ins import ADS

PARTIAL = ScoreResult(
    "r",
    (AdResult("A", 0.9, AdStatus.OK, truncated=True), AdResult("B", None, AdStatus.DEADLINE)),
    None,
    None,
    elapsed_ms=1,
    attempts=1,
)


def ask(min_score: float | None = None) -> Ask:
    return Ask("shoe", tuple(ADS), min_score=min_score)


def test_only_ads_without_a_score_are_asked_about_and_are_marked() -> None:
    asked = []

    def fallback(query: str, ad: Ad) -> float:
        asked.append((query, ad))
        return 0.25

    result = with_fallback(PARTIAL, ask(), fallback)
    assert asked == [("shoe", ADS[1])]
    assert result.scores == (PARTIAL.scores[0], AdResult("B", 0.25, AdStatus.FALLBACK))
    assert not result.complete


def test_an_ad_about_which_the_fallback_knows_nothing_keeps_its_status() -> None:
    assert with_fallback(PARTIAL, ask(), lambda *_: None) == PARTIAL


@pytest.mark.parametrize(("score", "eligible"), [(0.5, True), (0.49, False)])
def test_a_fallbacks_score_is_held_to_min_score_too(score: float, eligible: bool) -> None:
    result = with_fallback(PARTIAL, ask(min_score=0.5), lambda *_: score)
    assert result.scores[1].eligible is eligible


@pytest.mark.parametrize("score", [-0.1, 1.1, float("nan")])
def test_a_fallback_that_gives_no_probability_is_a_fault_of_the_caller(score: float) -> None:
    with pytest.raises(ValueError, match="'B'"):
        with_fallback(PARTIAL, ask(), lambda *_: score)
