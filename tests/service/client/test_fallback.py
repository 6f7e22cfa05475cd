from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest

from service.client import Ad, AdResult, AdStatus, ScoreResult
from service.client.ask import Ask
from service.client.fallback import checked_fallback, with_fallback
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
    return Ask("shoe", tuple(ADS), "r", min_score=min_score)


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


def test_a_fallback_that_raises_costs_its_ad_a_score_and_no_other_and_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fallback(_: str, ad: Ad) -> float:
        return {"C": 0.25}[ad.id]

    ids = "ABCD"
    none = dataclasses.replace(
        PARTIAL, scores=tuple(AdResult(one, None, AdStatus.FAILED) for one in ids)
    )
    asked = Ask("shoe", tuple(Ad(one, "shoe") for one in ids), "r")
    filled = with_fallback(none, asked, fallback)
    assert [ad.score for ad in filled.scores] == [None, None, 0.25, None]
    assert [ad.status for ad in filled.scores] == ["failed", "failed", "fallback", "failed"]
    (told,) = caplog.records
    assert told.message.startswith("the fallback failed for 3 ads")
    assert "KeyError: 'A'" in caplog.text


@pytest.mark.parametrize(("score", "eligible"), [(0.5, True), (0.49, False)])
def test_a_fallbacks_score_is_held_to_min_score_too(score: float, eligible: bool) -> None:
    result = with_fallback(PARTIAL, ask(min_score=0.5), lambda *_: score)
    assert result.scores[1].eligible is eligible


@pytest.mark.parametrize("score", [np.float32(0.75), np.float64(0.75), Fraction(3, 4)])
def test_any_kind_of_number_becomes_a_plain_one(score: float) -> None:
    filled = with_fallback(PARTIAL, ask(min_score=0.5), lambda *_: score).scores[1]
    assert type(filled.score) is float
    assert (filled.score, filled.eligible) == (0.75, True)


@pytest.mark.parametrize("score", ["0.5", True, [0.5], -0.1, 1.0000001, float("nan")])
def test_what_is_no_probability_costs_its_ad_a_score_and_no_other_and_is_named(
    caplog: pytest.LogCaptureFixture, score: object
) -> None:
    two = dataclasses.replace(
        PARTIAL, scores=tuple(AdResult(one, None, AdStatus.FAILED) for one in "AB")
    )
    asked = Ask("shoe", (Ad("A", "shoe"), Ad("B", "shoe")), "r")
    filled = with_fallback(two, asked, lambda _, ad: cast("Any", score) if ad.id == "A" else 0.25)
    assert [ad.score for ad in filled.scores] == [None, 0.25]
    assert "fallback's score for ad 'A': takes a number from 0 to 1" in caplog.text


async def awaited(_: str, __: Ad) -> float:
    return 0.5


@pytest.mark.parametrize("fallback", [None, 0.5, awaited])
def test_what_cannot_be_called_plainly_is_no_fallback(fallback: object) -> None:
    with pytest.raises(TypeError, match="fallback: takes a plain function"):
        checked_fallback(fallback)
