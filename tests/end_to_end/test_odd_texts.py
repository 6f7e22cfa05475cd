"""Texts and ids that JSON allows and nobody expects, on every route that takes a body."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_hostile_callers import GOOD_BODIES, check_answer

TEXTS = {
    "nothing": "",
    "white space": " \t\u2003\n",
    "NUL": "shoe\0bag",
    "right to left": "\u202eshoe نعل أحمر\u200f",
    "no character": "\uffff\ufffe",
    "combining": "e" + "\u0301" * 300,
    "beyond the basic plane": "👟🏽" * 50,
    "special tokens": "[CLS] shoe [SEP] red [SEP] [MASK] [PAD]",
    "one word of a million characters": "x" * 1_000_000,
    "a million characters of words": "shoe " * 200_000,
}
NOT_JSON = {
    "cut short": b'{"query": "red", "ads": [{"id": "1", "te',
    "a byte order mark": b'\xef\xbb\xbf{"query": "red"}',
    "UTF-16": '{"query": "red"}'.encode("utf-16"),
    "half of a surrogate pair": b'{"query": "\\ud800", "text_1": "\\udc00", "inputs": "\\ud800"}',
    "bytes that are no UTF-8": b'{"query": "\xff\xfe"}',
    "NaN": b'{"query": NaN, "inputs": [NaN], "text_1": NaN}',
    "a number too large for a float": b'{"query": 1e99999, "inputs": 1e99999}',
    "a number of many digits": b'{"query": ' + b"9" * 10_000 + b"}",
    "depth": b'{"query": ' * 20_000,
    "two values": b"{}{}",
    "nothing": b"",
}


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "9000000") as started:
        yield started


@pytest.fixture(scope="module")
def document(service: RunningService) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def addresses(service: RunningService) -> dict[str, str]:
    model = service.client.get("/v1/model").json()["model"]
    return {
        path: path.format(model=model["name"], version=model["version"]) for path in GOOD_BODIES
    }


def with_text(value: Any, text: str) -> Any:  # noqa: ANN401  # any JSON
    """The same with another text in place of the query, or of the ad, that the good bodies have."""
    if isinstance(value, dict):
        return {name: with_text(inner, text) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_text(inner, text) for inner in value]
    return text if value == "shoe" else value


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("path", GOOD_BODIES)
def test_any_text_of_an_ad_is_scored_or_refused_by_its_field(
    service: RunningService,
    document: dict[str, Any],
    addresses: dict[str, str],
    path: str,
    text: str,
) -> None:
    response = service.client.post(addresses[path], json=with_text(GOOD_BODIES[path], text))
    check_answer(document, path, response)
    is_blank = not text.strip()
    if path == "/v1/explain" and len(text) > 8_000:
        assert "8,000" in response.text or "8000" in response.text
    elif not is_blank:
        assert response.status_code == 200, response.text


@pytest.mark.parametrize("content", NOT_JSON.values(), ids=NOT_JSON)
@pytest.mark.parametrize("path", GOOD_BODIES)
def test_what_is_no_json_or_no_text_is_refused_in_the_words_of_the_route(
    service: RunningService,
    document: dict[str, Any],
    addresses: dict[str, str],
    path: str,
    content: bytes,
) -> None:
    headers = {"Content-Type": "application/json"}
    response = service.client.post(addresses[path], content=content, headers=headers)
    check_answer(document, path, response)
    assert response.status_code in (400, 422)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"ads": [{"text": "shoe"}]}, "ads[0].id"),
        ({"ads": [{"id": 1, "text": "shoe"}]}, "ads[0].id"),
        ({"ads": [{"id": None, "text": "shoe"}]}, "ads[0].id"),
        ({"ads": [{"id": "", "text": "shoe"}]}, "ads[0].id"),
        ({"ads": [{"id": "1", "title": ""}]}, "ads[0]"),
        ({"ads": [{"id": "1", "title": "shoe", "text": "shoe"}]}, "ads[0]"),
        ({"ads": {"id": "1", "text": "shoe"}}, "ads"),
        ({"timeout_ms": "250"}, "timeout_ms"),
        ({"timeout_ms": True}, "timeout_ms"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"min_score": "0.5"}, "min_score"),
        ({"min_score": 1.5}, "min_score"),
        ({"query": 7}, "query"),
        ({"request_id": ""}, "request_id"),
    ],
)
def test_ids_that_are_missing_and_numbers_as_strings_are_refused_by_their_field(
    service: RunningService, fields: dict[str, Any], named: str
) -> None:
    response = service.score({"query": "red", "ads": [{"id": "1", "text": "shoe"}], **fields})
    assert response.status_code == 422
    assert named in [detail["field"] for detail in response.json()["error"]["details"]]


def test_an_id_may_repeat_and_be_anything_that_is_text(service: RunningService) -> None:
    ids = [" ", "1", "1", "\0", "\u202e", "👟", '"}], "scores": [', "x" * 256]
    ads = [{"id": an_id, "text": f"shoe {n}"} for n, an_id in enumerate(ids)]
    answer = service.score({"query": "red", "ads": ads})
    assert [ad["id"] for ad in answer.json()["scores"]] == ids


def test_special_tokens_that_an_ad_spells_out_are_words_to_the_model(
    service: RunningService,
) -> None:
    ad = {"text": "shoe [SEP] red [CLS] [PAD] [MASK]"}
    explained = service.client.post("/v1/explain", json={"query": "red [SEP]", "ad": ad}).json()
    special = [token["token"] for token in explained["tokens"] if token["side"] == "special"]
    assert special == ["[CLS]", "[SEP]", "[SEP]"]
    ids = {token["id"] for token in explained["tokens"] if token["side"] == "special"}
    assert not ids & {token["id"] for token in explained["tokens"] if token["side"] != "special"}


def test_nothing_of_this_was_a_fault_of_ours(service: RunningService) -> None:
    assert not [entry for entry in service.log if entry["level"] == "error"]
    assert service.client.get("/readyz").status_code == 200
