from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.api.schemas import ScoreRequest
from service.client import Ad
from service.client.ask import Ask, checked_ask
from tests.service.client.stand_ins import ADS


def test_what_can_be_asked_is_taken_as_it_is() -> None:
    assert checked_ask("shoe", ADS, "r") == Ask("shoe", tuple(ADS), "r")
    asked = checked_ask("shoe", iter(ADS), "auction-1", "batch", np.float32(0.5))
    assert asked == Ask("shoe", tuple(ADS), "auction-1", "batch", 0.5)
    assert type(asked.min_score) is float


def test_limits_that_are_a_services_own_are_not_guessed_here() -> None:
    many = (Ad("A", text="x" * 100_000),) * 1001
    assert checked_ask("q", many, "r") == Ask("q", many, "r")


@pytest.mark.parametrize(
    ("query", "ads", "request_id", "message"),
    [
        ("", ADS, "r", "query: takes a text that is not only white space, got str ''"),
        (" \n", ADS, "r", "query: takes a text that is not only white space"),
        ("q", [], "r", "ads: takes one Ad or more, got none"),
        ("q", [*ADS, Ad("C")], "r", "ads[2]: an ad needs a title or a text that is not empty"),
        ("q", [Ad("A", description="d")], "r", "ads[0]: an ad needs a title or a text"),
        ("q", [Ad("A", "t", text="x")], "r", "ads[0]: give either text, or title and description"),
        ("q\ud800", ADS, "r", "query: takes text, got half of a surrogate pair at character 1"),
        ("q", [Ad("A", text="\udfff")], "r", "ads[0].text: takes text, got half of a surrogate"),
        ("q", [Ad("", "t")], "r", "ads[0].id: takes 1 to 256 characters, got 0"),
        ("q", [Ad("x" * 257, "t")], "r", "ads[0].id: takes 1 to 256 characters, got 257"),
        ("q", ADS, "", "request_id: takes 1 to 128 printable characters"),
        ("q", ADS, "a b", "request_id: takes 1 to 128 printable characters"),
        ("q", ADS, "x" * 129, "request_id: takes 1 to 128 printable characters"),
    ],
)
def test_what_no_service_takes_is_refused_here_by_its_field(
    query: str, ads: list[Ad], request_id: str, message: str
) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # the message is what is checked
        checked_ask(query, ads, request_id)
    assert str(caught.value).startswith(message)


AD_TEXTS = st.sampled_from(["", " ", "red shoe"])
ANY_IDS = st.sampled_from(["", "r", "a b", "x" * 128, "x" * 129, "\u00e4", "a\n"])


@given(st.builds(Ad, ANY_IDS, AD_TEXTS, AD_TEXTS, AD_TEXTS), ANY_IDS, AD_TEXTS)
def test_what_is_refused_here_is_what_the_service_would_refuse(
    ad: Ad, request_id: str, query: str
) -> None:
    fields = {"query": query, "ads": [dataclasses.asdict(ad)], "request_id": request_id}
    try:
        ScoreRequest.model_validate(fields)
    except ValidationError:
        with pytest.raises(ValueError, match=":"):
            checked_ask(query, [ad], request_id)
    else:
        checked_ask(query, [ad], request_id)


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: checked_ask(7, ADS, "r"), "query: takes str, got int 7"),
        (lambda: checked_ask(None, ADS, "r"), "query: takes str, got None"),
        (lambda: checked_ask("q", Ad("A"), "r"), "ads: takes a sequence of Ad, got a single one"),
        (lambda: checked_ask("q", None, "r"), "ads: takes a sequence of Ad, got None"),
        (lambda: checked_ask("q", "A", "r"), "ads: takes a sequence of Ad, got str 'A'"),
        (lambda: checked_ask("q", {"id": "A"}, "r"), "ads: takes a sequence of Ad, got dict"),
        (
            lambda: checked_ask("q", [*ADS, {"id": "A"}], "r"),
            "ads[2]: takes Ad, got dict {'id': 'A'}",
        ),
        (lambda: checked_ask("q", ["red shoe"], "r"), "ads[0]: takes Ad, got str 'red shoe'"),
        (lambda: checked_ask("q", [Ad(1)], "r"), "ads[0].id: takes str, got int 1"),  # type: ignore[arg-type]  # wrong on purpose, here and below
        (lambda: checked_ask("q", [Ad("A", title=None)], "r"), "ads[0].title: takes str, got None"),  # type: ignore[arg-type]
        (
            lambda: checked_ask("q", ADS, "r", min_score="0.5"),
            "min_score: takes a number from 0 to 1",
        ),
        (lambda: checked_ask("q", ADS, 7), "request_id: takes str, got int 7"),
    ],
)
def test_another_type_is_named_with_what_is_taken(ask: Callable[[], Ask], message: str) -> None:
    with pytest.raises(TypeError) as caught:
        ask()
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("priority", ["urgent", 0, None, ["batch"]])
def test_a_priority_that_there_is_not_is_refused(priority: object) -> None:
    with pytest.raises(ValueError, match="priority: takes 'auction' or 'batch'"):
        checked_ask("q", ADS, "r", priority)


@pytest.mark.parametrize("min_score", [-0.01, 1.01, float("nan")])
def test_a_least_score_that_is_no_probability_is_refused(min_score: float) -> None:
    with pytest.raises(ValueError, match="min_score: takes a number from 0 to 1"):
        checked_ask("q", ADS, "r", min_score=min_score)
