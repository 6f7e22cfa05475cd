"""The id of a request: its body's own, else its header's, else one that is made up.

Answers and errors carry it, and the line that the log has of the request.
"""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Mapping
from typing import Any

from fastapi import Request
from pydantic_core import from_json

from service.api.schemas import REQUEST_ID_HEADER
from service.domain import is_request_id
from service.request_record import RequestRecord

RECORD_KEY = "adrel.record"
"""In the ASGI scope of a request that is counted."""

# A request id is unique without asking the kernel for random bytes each time.
PROCESS_ID = secrets.token_hex(8)
REQUESTS = itertools.count()


def id_of_headers(headers: Mapping[str, str]) -> str:
    """The header's if it is a proper one, else a new one."""
    from_header = headers.get(REQUEST_ID_HEADER, "")
    return from_header if is_request_id(from_header) else f"{PROCESS_ID}-{next(REQUESTS):x}"


def request_id(request: Request) -> str:
    """As it is known now; of a request that is not counted as its headers have it."""
    record = request.scope.get(RECORD_KEY)
    if isinstance(record, RequestRecord):
        return record.request_id
    return id_of_headers(request.headers)


def take_id(request: Request, from_body: object) -> None:
    """Let the body's id be the request's, if it is a proper one.

    Args:
        request: One that is counted.
        from_body: What stands there.
    """
    if isinstance(from_body, str) and is_request_id(from_body):
        request.scope[RECORD_KEY].request_id = from_body


def take_id_of_faulty_body(request: Request, content: bytes) -> None:
    """Likewise from a body of ours that is refused for something else."""
    if b'"request_id"' not in content:
        return
    try:
        fields: Any = from_json(content)
    except ValueError:
        return
    if isinstance(fields, dict):
        take_id(request, fields.get("request_id"))
