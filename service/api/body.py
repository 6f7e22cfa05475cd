"""From the bytes of a request to a validated body, with nothing read beyond the limit."""

from __future__ import annotations

import json
from collections.abc import MutableMapping
from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError

from service.api.faults import MAX_FIELD_CHARS, invalid_request, invalid_score_request
from service.api.schemas import ScoreRequest, StrictBody
from service.api.state import RequestLimits
from service.errors import (
    BodyTooLarge,
    ClientGone,
    InvalidRequest,
    RequestTimeout,
    TooManyAds,
    UnsupportedMediaType,
)

Body = TypeVar("Body", bound=StrictBody)

# In the ASGI scope of a request whose body is overdue. A timer here would take 10 us of every
# request; the connection has one only where a body does not come with its head.
LATE = "adrel.body_is_late"

# An object of ours has ten fields at the most. With more colons than this for each ad a body may
# have so many unknown fields that listing them all would hold up everybody.
MAX_FIELDS = 16


async def read_body(request: Request, limits: RequestLimits, *, any_type: bool = False) -> bytes:
    """The body of a JSON request.

    Args:
        request: The request.
        limits: The most that is read.
        any_type: Take it without a declaration as JSON, for clients that make none.

    Raises:
        UnsupportedMediaType: It is not declared as JSON, or compressed.
        BodyTooLarge: It is, or says that it is, over the limit; the rest is not read.
        RequestTimeout: The server says that it is overdue; see `mark_late`.
        ClientGone: The connection was closed before the body was whole.
    """
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not any_type:
        raise UnsupportedMediaType(content_type)
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise UnsupportedMediaType(content_type, encoding)
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limits.max_body_bytes:
        raise BodyTooLarge(limits.max_body_bytes)
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > limits.max_body_bytes:
            raise BodyTooLarge(limits.max_body_bytes)
        if more and LATE in request.scope:
            raise RequestTimeout(limits.body_timeout_s)
    return bytes(body)


def mark_late(scope: MutableMapping[str, Any]) -> None:
    """Let `read_body` give up with the next message, however little it brings."""
    scope[LATE] = True


def parse_score_request(body: bytes, max_ads: int) -> ScoreRequest:
    """The validated request.

    What only odd bodies need costs only them: every ad has a brace and every field a colon, so
    two counts, 5 us for 20 ads, tell most bodies that need no second look.

    Raises:
        TooManyAds: More than `max_ads`; the fault of none of them is told.
        InvalidRequest: Not JSON, or faulty fields; see `invalid_score_request`.
    """
    n_colons = body.count(b":")
    if body.count(b"{") > max_ads + 1 or n_colons > MAX_FIELDS * (max_ads + 1):
        # Validating costs 2 us an ad and an unknown field, looking at them a quarter of that.
        fields = _fields_given_once(body)
        ads = fields.get("ads") if isinstance(fields, dict) else None
        if isinstance(ads, list) and len(ads) > max_ads:
            raise TooManyAds(len(ads), max_ads)
    try:
        request = ScoreRequest.model_validate_json(body)
    except ValidationError as error:
        raise invalid_score_request(error, body, max_ads) from None
    if n_colons != request.n_fields:  # a colon in a text, or a field that is given twice
        _fields_given_once(body)
    return request


def parse_body(body: type[Body], content: bytes) -> Body:
    """The validated body of a route of ours that is not in a hurry.

    Raises:
        InvalidRequest: As `parse_score_request` does.
    """
    try:
        request = body.model_validate_json(content)
    except ValidationError as error:
        raise invalid_request(error) from None
    _fields_given_once(content)
    return request


def _fields_given_once(body: bytes) -> object:
    """The JSON value, in which no object gives a field twice or has a great many.

    pydantic would take the last one without a word.

    Raises:
        InvalidRequest: One does, or it is no JSON.
    """
    try:
        return json.loads(body, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        problem = f"Invalid JSON: {error}"
        raise InvalidRequest(f"body: {problem}", [{"field": "body", "problem": problem}]) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)[:MAX_FIELD_CHARS]
        problem = "is given twice in one object"
        raise InvalidRequest(f"{twice}: {problem}", [{"field": twice, "problem": problem}])
    if len(fields) > MAX_FIELDS:
        problem = f"an object has {len(fields)} fields, the limit is {MAX_FIELDS}"
        raise InvalidRequest(f"body: {problem}", [{"field": "body", "problem": problem}])
    return fields
