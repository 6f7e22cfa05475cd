"""From the bytes of a request to a validated body, with nothing read beyond the limit."""

from __future__ import annotations

from typing import Any, TypeVar

from fastapi import Request
from pydantic import ValidationError
from starlette.requests import ClientDisconnect

from service.api.schemas import StrictBody
from service.errors import BodyTooLarge, ClientGone, InvalidRequest, UnsupportedMediaType

Body = TypeVar("Body", bound=StrictBody)

MAX_REPORTED_FAULTS = 20
MAX_FIELD_CHARS = 100  # a caller's misspelt field name may be of any length


async def read_body(request: Request, limit_bytes: int, *, any_type: bool = False) -> bytes:
    """The body of a JSON request.

    Args:
        request: The request.
        limit_bytes: Most that is read.
        any_type: Take it without a declaration as JSON, for clients that make none.

    Raises:
        UnsupportedMediaType: It is not declared as JSON, or compressed.
        BodyTooLarge: It is, or says that it is, over the limit; the rest is not read.
        ClientGone: The connection was closed before the body was whole.
    """
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type != "application/json" and not any_type:
        raise UnsupportedMediaType(content_type)
    encoding = request.headers.get("content-encoding", "identity").lower()
    if encoding != "identity":
        raise UnsupportedMediaType(f"{content_type} with Content-Encoding {encoding}")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit_bytes:
        raise BodyTooLarge(limit_bytes)
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > limit_bytes:
                raise BodyTooLarge(limit_bytes)
    except ClientDisconnect as error:
        raise ClientGone from error
    return bytes(body)


def parse_body(body: type[Body], content: bytes) -> Body:
    """The validated body of a route of ours.

    Raises:
        InvalidRequest: Not JSON, or faulty fields; the message names the first fault, `details`
            has one entry each.
    """
    try:
        return body.model_validate_json(content)
    except ValidationError as error:
        raise invalid_request(error) from None


def invalid_request(error: ValidationError) -> InvalidRequest:
    """Our error for a body's faulty fields: the first one in the message, `details` for all."""
    faults = error.errors(include_url=False, include_context=False, include_input=False)
    details = [_detail(fault) for fault in faults[:MAX_REPORTED_FAULTS]]
    message = f"{details[0]['field']}: {details[0]['problem']}"
    if len(faults) > 1:
        message += f" (and {len(faults) - 1} more)"
    return InvalidRequest(message, details)


def _detail(fault: Any) -> dict[str, str]:  # noqa: ANN401  # pydantic's own record
    if fault["type"] == "json_invalid":
        return {"field": "body", "problem": fault["msg"]}
    field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault["loc"])
    return {
        "field": field.removeprefix(".")[:MAX_FIELD_CHARS] or "body",
        "problem": fault["msg"].removeprefix("Value error, "),
    }
