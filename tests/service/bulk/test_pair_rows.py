from __future__ import annotations

import json
from typing import Any

import pytest

from service.api.body import parse_score_request
from service.bulk.pair_rows import parse_pair
from service.domain import Ad
from service.errors import InvalidRequest

LIMIT_BYTES = 1000


def reason(row: dict[str, Any]) -> str:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  # its message is what is tested
        parse_pair(row, LIMIT_BYTES)
    return str(caught.value)


def test_a_row_is_a_query_and_an_ad() -> None:
    row = {"query": "q", "title": "t", "description": None, "id": 7, "label": [1]}
    assert parse_pair(row, LIMIT_BYTES) == ("q", Ad("", title="t"))
    assert parse_pair({"query": "q", "text": "t"}, LIMIT_BYTES) == ("q", Ad("", text="t"))


@pytest.mark.parametrize(
    "row",
    [
        {"title": "t"},
        {"query": " ", "title": "t"},
        {"query": 5, "title": "t"},
        {"query": "q", "title": ["t"]},
        {"query": "q", "description": "d"},
        {"query": "q", "title": "t", "text": "t"},
        {"query": "q"},
    ],
)
def test_what_the_api_refuses_is_refused_in_its_words(row: dict[str, Any]) -> None:
    ad = {name: value for name, value in row.items() if name != "query"}
    body = {name: value for name, value in row.items() if name == "query"} | {
        "ads": [{"id": "A", **ad}]
    }
    with pytest.raises(InvalidRequest) as refused:
        parse_score_request(json.dumps(body).encode(), 10)
    assert refused.value.message.removeprefix("ads[0].").removeprefix("ads[0]: ") == reason(row)


def test_texts_may_have_as_many_bytes_as_a_request() -> None:
    parse_pair({"query": "q", "text": "é" * 499}, LIMIT_BYTES)
    assert (
        reason({"query": "q", "text": "é" * 500}) == "the texts have 1001 bytes, the limit is 1000"
    )


def test_bytes_that_are_no_text_are_refused() -> None:
    assert reason({"query": "q", "text": b"\xff"}) == "text: Input should be a valid string"
