from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, get_args

import pytest
from fastapi import Request
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from service.api.body import mark_late, parse_score_request, read_body
from service.api.openapi import BODIES
from service.api.state import RequestLimits
from service.errors import BodyTooLarge, ClientGone, InvalidRequest, RequestTimeout, TooManyAds

MAX_ADS = 512


def body(**fields: object) -> bytes:
    whole = {"query": "red shoe", "ads": [{"id": "1", "text": "shoe"}], **fields}
    return json.dumps(whole, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b'{"query": "a", "query": "b", "ads": [{"id": "1", "text": "x"}]}', "query"),
        (b'{"query": "a", "ads": [{"id": "1", "text": "x"}], "ads": [{"id": "2", "text": "y"}]}',
         "ads"),
        (b'{"query": "a", "ads": [{"id": "1", "id": "1", "text": "x"}]}', "id"),
        (b'{"query": "a", "ads": [{"id": "1", "text":"x"}, {"id": "2", "text":"x", "text" :"x"}]}',
         "text"),
        (b'{"query": "a", "ads": [{"id": "1", "\\u0069d": "2", "text": "x"}]}', "id"),
        (b'{"query": ":", "ads": [{"id": "1", "id": "\\u003a", "text": "x"}]}', "id"),
        (b'{"query": "a", "timeout_ms": 1, "timeout_ms": 1, "ads": [{"id": "1", "text": "x"}]}',
         "timeout_ms"),
    ],
)  # fmt: skip
def test_a_field_that_is_given_twice_is_refused_by_name(content: bytes, name: str) -> None:
    with pytest.raises(InvalidRequest, match=f"{name}: is given twice") as told:
        parse_score_request(content, MAX_ADS)
    assert told.value.details == ({"field": name, "problem": "is given twice in one object"},)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(lambda text: f"{text}.")


@given(query=TEXTS, texts=st.lists(TEXTS, min_size=1, max_size=5), ascii_only=st.booleans())
def test_whatever_the_texts_hold_a_body_without_repetition_is_read_as_it_is(
    query: str, texts: list[str], ascii_only: bool
) -> None:
    ads = [{"id": text[:256], "title": text, "description": text} for text in texts]
    content = json.dumps({"query": query, "ads": ads}, ensure_ascii=ascii_only).encode()
    request = parse_score_request(content, MAX_ADS)
    assert request.query == query
    assert [ad.model_dump(exclude_unset=True) for ad in request.ads] == ads


@given(
    query=TEXTS,
    fields=st.lists(st.sampled_from(["id", "text", "title"]), min_size=2, max_size=5),
    value=st.sampled_from(["x", ":", '":', "\\", "{id:}"]),
)
def test_any_repetition_in_any_ad_is_found(query: str, fields: list[str], value: str) -> None:
    pairs = [f"{json.dumps(name)}: {json.dumps(value)}" for name in fields]
    content = f'{{"query": {json.dumps(query)}, "ads": [{{{", ".join(pairs)}}}]}}'.encode()
    repeated = len(set(fields)) < len(fields)
    valid = set(fields) in ({"id", "text"}, {"id", "title"})
    if repeated or not valid:
        with pytest.raises(InvalidRequest) as told:
            parse_score_request(content, MAX_ADS)
        assert not valid or "is given twice" in told.value.message
    else:
        parse_score_request(content, MAX_ADS)


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "-Infinity", "1e999", '"5"', "true", "[5]", "1" * 5000]
)
def test_a_number_is_a_finite_number(value: str) -> None:
    content = f'{{"query": "q", "ads": [{{"id": "1", "text": "x"}}], "timeout_ms": {value}}}'
    with pytest.raises(InvalidRequest):
        parse_score_request(content.encode(), MAX_ADS)


@pytest.mark.parametrize("place", ["query", "id", "text", "request_id"])
@pytest.mark.parametrize("escape", ["\\ud800", "\\udc00", "\\udc00\\ud800", "x\\ud83dx"])
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(place: str, escape: str) -> None:
    content = body(request_id="r1").replace(
        {"query": b"red shoe", "id": b'"1"', "text": b'"shoe"', "request_id": b"r1"}[place],
        escape.encode() if place in ("query", "request_id") else f'"{escape}"'.encode(),
    )
    assert escape.encode() in content
    with pytest.raises(InvalidRequest, match=r"Invalid JSON: .*(surrogate|hex escape)"):
        parse_score_request(content, MAX_ADS)


@pytest.mark.parametrize(
    "deep", [b"[" * 100_000, b'{"a":' * 100_000, b'{"query": ' + b"[" * 100_000]
)
def test_deep_nesting_is_refused_and_recurses_nowhere(deep: bytes) -> None:
    with pytest.raises(InvalidRequest, match=r"Invalid JSON: .*recursion"):
        parse_score_request(deep, MAX_ADS)


@pytest.mark.parametrize("request_id", ["a\x00b", "a\nb", "a b", "ä", "x" * 129, ""])
def test_a_request_id_is_a_short_line_of_printable_ascii(request_id: str) -> None:
    with pytest.raises(InvalidRequest, match="request_id: must be 1 to 128 printable characters"):
        parse_score_request(body(request_id=request_id), MAX_ADS)


def test_an_ads_id_is_the_callers_own_business_and_may_repeat() -> None:
    ads = [{"id": "\x00\n", "text": "x"}] * 2
    assert [ad.id for ad in parse_score_request(body(ads=ads), MAX_ADS).ads] == ["\x00\n"] * 2


@pytest.mark.parametrize("ad", [{"id": 1, "colour": "red"}, 0])
def test_too_many_ads_are_counted_and_the_fault_of_none_is_told(ad: object) -> None:
    with pytest.raises(TooManyAds, match="got 3, the limit is 2"):
        parse_score_request(body(ads=[ad] * 3), 2)


OPTIONAL_FIELDS = {"timeout_ms": 5.0, "priority": "batch", "min_score": 0.5, "request_id": "r1"}


@given(null=st.sets(st.sampled_from(sorted(OPTIONAL_FIELDS))))
def test_null_in_an_optional_field_is_as_if_it_were_absent(null: set[str]) -> None:
    rest = {name: value for name, value in OPTIONAL_FIELDS.items() if name not in null}
    ad = {"id": "1", "title": "shoe", "description": None, "text": None}
    with_nulls = parse_score_request(body(ads=[ad], **rest, **dict.fromkeys(null)), MAX_ADS)
    without = parse_score_request(body(ads=[{"id": "1", "title": "shoe"}], **rest), MAX_ADS)
    assert with_nulls.to_domain("r", 1.0) == without.to_domain("r", 1.0)


def test_an_ad_of_nulls_alone_says_nothing() -> None:
    ads = [{"id": "1", "title": None, "description": None, "text": None}]
    with pytest.raises(InvalidRequest, match="needs a title or a text"):
        parse_score_request(body(ads=ads), MAX_ADS)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for part in get_args(annotation):
        yield from models_in(part)


@pytest.mark.parametrize("body_type", BODIES)
def test_every_field_of_every_protocol_that_may_be_left_out_may_be_null(
    body_type: type[BaseModel],
) -> None:
    for model in models_in(body_type):
        for name, field in model.model_fields.items():
            if not field.is_required() and field.annotation is not Any:
                assert type(None) in get_args(field.annotation), f"{model.__name__}.{name}"


def test_braces_in_texts_are_no_ads() -> None:
    ads = [{"id": "1", "text": "{keyword}" * 10}] * 2
    assert len(parse_score_request(body(ads=ads), 2).ads) == 2


def test_a_great_many_unknown_fields_are_refused_without_listing_them() -> None:
    with pytest.raises(InvalidRequest, match="an object has 20002 fields, the limit is 16"):
        parse_score_request(body(**{f"field{n}": 0 for n in range(20_000)}), MAX_ADS)


def test_no_error_says_more_of_a_request_than_fits() -> None:
    for content in (
        body(**{"x" * 10_000: 1}),
        body(ads=[{"id": "1", "y" * 10_000: 1}]),
        b'{"' + b"z" * 10_000 + b'": 1, "' + b"z" * 10_000 + b'": 1, "query": 1}',
        body(priority="v" * 10_000),
    ):
        with pytest.raises(InvalidRequest) as told:
            parse_score_request(content, MAX_ADS)
        assert len(told.value.message) + len(str(told.value.details)) < 1500


def request_of(receive: Callable[[], Any]) -> Request:
    headers = [(b"content-type", b"application/json")]
    return Request({"type": "http", "method": "POST", "headers": headers}, receive)


def limits(body_timeout_s: float) -> RequestLimits:
    return RequestLimits(10, body_timeout_s, MAX_ADS, default_timeout_s=1, max_timeout_s=1)


@pytest.mark.anyio
async def test_a_body_that_the_server_calls_late_is_given_up() -> None:
    pieces = [b"x", b"x", b""]

    async def receive() -> dict[str, Any]:
        piece = pieces.pop(0)
        if not piece:
            mark_late(request.scope)
        return {"type": "http.request", "body": piece, "more_body": True}

    request = request_of(receive)
    with pytest.raises(RequestTimeout, match=r"not complete 0\.5 s after the headers"):
        await read_body(request, limits(0.5))
    assert not pieces


@pytest.mark.anyio
async def test_a_body_in_pieces_is_read_to_the_limit_and_no_further() -> None:
    pieces = iter(range(100))

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"xxx", "more_body": next(pieces) < 2}

    assert await read_body(request_of(receive), limits(60)) == b"x" * 9
    pieces = iter([0] * 100)
    with pytest.raises(BodyTooLarge):
        await read_body(request_of(receive), limits(60))
    assert len(list(pieces)) == 96


@pytest.mark.anyio
async def test_a_body_that_is_cut_short_by_its_caller_is_nobodys_fault() -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    with pytest.raises(ClientGone):
        await read_body(request_of(receive), limits(60))
