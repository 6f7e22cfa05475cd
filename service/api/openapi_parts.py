"""What a route tells the OpenAPI document of itself, beyond what the framework reads off it.

`"{max_ads_per_request}"` and the like stand for limits that are settings: `openapi` puts in the
numbers of the service that runs. Alone in a schema they become the number, amid a description the
number with the setting's name.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from service.api.schemas import NULL, REQUEST_ID_HEADER
from service.api.server_timing import SERVER_TIMING_HEADER
from service.domain import REQUEST_ID_PATTERN
from service.errors import Overloaded, ServiceError, Unauthorized

Responses = dict[int | str, dict[str, Any]]

TIMEOUT_HEADER = "X-Request-Timeout-Ms"
RETRY_HEADER = "Retry-After"
TRUNCATED_HEADER = "X-Truncated-Texts"


def _timeout_parameter(description: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": TIMEOUT_HEADER,
        "in": "header",
        "required": False,
        "description": f"Milliseconds until the answer must leave, as a plain number; {description}"
        " A timeout in the body wins.",
        "schema": {
            "type": "number",
            "exclusiveMinimum": 0,
            "default": "{default_timeout_ms}",
            **schema,
        },
        "example": 250,
    }


REQUEST_ID_PARAMETER = {
    "name": REQUEST_ID_HEADER,
    "in": "header",
    "required": False,
    "description": "Comes back in the answer; another one is made up where it is absent or not "
    "1 to 128 printable ASCII characters. An id in the body wins.",
    "schema": {"type": "string", "pattern": REQUEST_ID_PATTERN},
    "example": "auction-7",
}

PARAMETERS = [
    _timeout_parameter("at most {max_timeout_ms}.", {"maximum": "{max_timeout_ms}"}),
    REQUEST_ID_PARAMETER,
]
"""Of our own API."""

COMPATIBLE_PARAMETERS = [
    _timeout_parameter("more than {max_timeout_ms} is taken as that.", {}),
    REQUEST_ID_PARAMETER,
]
"""Of other protocols."""

REQUEST_ID_OUT = {
    REQUEST_ID_HEADER: {
        "description": "The request's id: its body's own, else the header's, else made up.",
        "schema": {"type": "string", "pattern": REQUEST_ID_PATTERN},
    }
}
SCORED_OUT = {
    **REQUEST_ID_OUT,
    SERVER_TIMING_HEADER: {
        "description": "Where the time went: milliseconds of each stage and in total.",
        "schema": {"type": "string"},
    },
}
"""Of every answer with scores."""

ANSWER_HEADERS = {
    **SCORED_OUT,
    TRUNCATED_HEADER: {
        "description": "How many texts did not fit the model with their query and were cut at the "
        "end; absent where none was.",
        "schema": {"type": "integer", "minimum": 1},
    },
}
"""Of answers in other protocols."""

_RETRY_AFTER = {
    RETRY_HEADER: {
        "description": "Seconds after which another try may pay.",
        "schema": {"type": "integer", "minimum": 1},
    }
}


_CHALLENGE = {
    "WWW-Authenticate": {
        "description": "Bearer, with `invalid_token` where a key came (RFC 6750, section 3).",
        "schema": {"type": "string"},
    }
}


def request_body(*bodies: type[BaseModel]) -> dict[str, Any]:
    """OpenAPI `requestBody` of a route that reads its body itself."""
    schemas = [{"$ref": f"#/components/schemas/{body.__name__}"} for body in bodies]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    return {
        "required": True,
        "description": "At most {max_body_bytes} bytes.",
        "content": {"application/json": {"schema": schema}},
    }


def answered(description: str, headers: Mapping[str, Any] = SCORED_OUT) -> Responses:
    """The entry of the good answer."""
    return {200: {"description": description, "headers": dict(headers)}}


def meaning(error: type[ServiceError]) -> str:
    """What an error means, in a sentence."""
    if error is ServiceError:
        return "A fault of ours."
    return re.split(r"[.;\n]", inspect.getdoc(error) or error.code)[0] + "."


def error_responses(
    schema: type[BaseModel],
    errors: Iterable[tuple[type[ServiceError], int, dict[str, Any]]],
) -> Responses:
    """Entries of errors, by status.

    Args:
        schema: Of every body.
        errors: Each error with its status and the body of its example.
    """
    responses: Responses = {}
    for error, status, body in errors:
        entry = responses.setdefault(
            status,
            {
                "model": schema,
                "description": "",
                "headers": dict(REQUEST_ID_OUT),
                "content": {"application/json": {"examples": {}}},
            },
        )
        entry["description"] += f"- `{error.code}`: {meaning(error)}\n"
        example = {"summary": meaning(error), "value": _without_null(body)}
        entry["content"]["application/json"]["examples"][error.__name__] = example
        if issubclass(error, Overloaded):
            entry["headers"] |= _RETRY_AFTER
        if error is Unauthorized:
            entry["headers"] |= _CHALLENGE
    return dict(sorted(responses.items(), key=lambda item: int(item[0])))


def _without_null(body: dict[str, Any]) -> dict[str, Any]:
    return {
        name: NULL if value is None else _without_null(value) if isinstance(value, dict) else value
        for name, value in body.items()
    }


def either(*tables: Responses) -> Responses:
    """The entries of a route that has several shapes of errors, by whose client asks."""
    together: Responses = {}
    for status in sorted({int(status) for table in tables for status in table}):
        entries = [table[status] for table in tables if status in table]
        together[status] = {
            "model": functools.reduce(operator.or_, (entry["model"] for entry in entries)),
            "description": "".join(
                dict.fromkeys(
                    line
                    for entry in entries
                    for line in entry["description"].splitlines(keepends=True)
                )
            ),
            "headers": entries[0]["headers"],
            "content": {"application/json": {"examples": _named_apart(entries)}},
        }
    return together


def _named_apart(entries: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {
        f"{name}, {entry['model'].__name__}": example
        for entry in entries
        for name, example in entry["content"]["application/json"]["examples"].items()
    }
