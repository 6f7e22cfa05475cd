"""One call in another protocol: what came, who speaks, and how it ended."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import from_json

from service.api.body import read_body
from service.api.compatible.dialects import Dialect
from service.api.error_examples import INTERNAL_ERROR
from service.api.faults import invalid_request, json_problem
from service.api.recording import begin, end
from service.api.request_ids import take_id
from service.api.server_timing import with_server_timing
from service.api.state import ServiceState, state_of
from service.errors import InvalidRequest, NotReady, ServiceError

logger = logging.getLogger(__name__)


class LenientBody(BaseModel):
    """A body of a client that was written for somebody else: unknown fields are let pass."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


Body = TypeVar("Body", bound=LenientBody)


@dataclass(slots=True)
class Call:
    """One call.

    Attributes:
        request: The HTTP request.
        state: The service.
        started_s: When it came.
        dialect: In which its errors are told; set anew where the body shows another speaker.
    """

    request: Request
    state: ServiceState
    started_s: float
    dialect: Dialect


async def counted(
    request: Request,
    route: str,
    dialect: Dialect,
    answer: Callable[[Call], Awaitable[Response]],
) -> Response:
    """Answer a call and count it.

    Args:
        request: The HTTP request.
        route: The metrics' label.
        dialect: Of the errors.
        answer: Makes the response; its errors are told in the call's dialect.
    """
    state = state_of(request)
    record = begin(request, route)
    call = Call(request, state, record.started_s, dialect)
    outcome = NotReady.code  # stays where the server gives up on what its drain could not finish
    try:
        outcome, response = await spoken(call, answer)
        return with_server_timing(response, record)
    finally:
        end(state, record, outcome)


async def spoken(call: Call, answer: Callable[[Call], Awaitable[Response]]) -> tuple[str, Response]:
    """Answer a call without counting it.

    Returns:
        outcome: "ok", or the code of the error.
        response: Also for errors of every kind.
    """
    try:
        return "ok", await answer(call)
    except ServiceError as error:
        return error.code, call.dialect.error_response(call.request, error)
    except Exception:
        logger.exception("a request failed for a reason of ours")
        fault = ServiceError(INTERNAL_ERROR)
        return fault.code, call.dialect.error_response(call.request, fault)


async def read_fields(call: Call) -> dict[str, Any]:
    """The fields of the call's JSON object; an id among them becomes the request's.

    Raises:
        NotReady: The model is loading or the service drains.
        ServiceError: As `read_body` does.
        InvalidRequest: Not a JSON object.
    """
    call.state.ready_parts()
    fields = parse_fields(await read_body(call.request, call.state.limits))
    take_id(call.request, fields.get("request_id"))
    return fields


def parse_fields(content: bytes) -> dict[str, Any]:
    """The fields of a JSON object; of a field that stands there twice the last one counts.

    Raises:
        InvalidRequest: Not a JSON object.
    """
    try:
        fields = from_json(content, allow_inf_nan=False)
    except ValueError as error:
        problem = f"Invalid JSON: {json_problem(str(error))}"
        raise InvalidRequest(f"body: {problem}", [{"field": "body", "problem": problem}]) from None
    if not isinstance(fields, dict):
        problem = "must be a JSON object"
        raise InvalidRequest(f"body: {problem}", [{"field": "body", "problem": problem}])
    return fields


def check_given_once(fields: dict[str, Any], names: Sequence[str]) -> None:
    """Refuse a body that says the same thing under two names, of which one would be ignored.

    Args:
        fields: As they came; one that is null was not given.
        names: For the same thing.

    Raises:
        InvalidRequest: More than one is there; names them.
    """
    given = [name for name in names if fields.get(name) is not None]
    if len(given) > 1:
        problem = f"{' and '.join(given)} are names for the same; give one of them"
        details = [{"field": name, "problem": problem} for name in given]
        raise InvalidRequest(problem, details)


def validated(body: type[Body], fields: dict[str, Any]) -> Body:
    """The fields as a body.

    Raises:
        InvalidRequest: A field is wrong or missing; names it.
    """
    try:
        return body.model_validate(fields)
    except ValidationError as error:
        raise invalid_request(error) from None
