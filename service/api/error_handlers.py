"""From errors to HTTP answers: the only place that knows a status."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from service.api.error_examples import ERROR_EXAMPLES, INTERNAL_ERROR, PROBE_EXAMPLES
from service.api.json_response import json_response
from service.api.openapi_parts import RETRY_HEADER, Responses, error_responses
from service.api.request_ids import request_id
from service.api.schemas import REQUEST_ID_HEADER, ErrorResponse
from service.errors import (
    MAX_QUOTED_CHARS,
    BodyTooLarge,
    BundleRefused,
    ClientGone,
    DeadlineExceeded,
    DeadlineUnreachable,
    InferenceFailed,
    InvalidRequest,
    NotLive,
    NotReady,
    Overloaded,
    QueueFull,
    ReloadRunning,
    RequestTimeout,
    ServiceError,
    TooManyAds,
    Unauthorized,
    UnsupportedMediaType,
)

ForeignBody = Callable[[str, int, str], dict[str, Any] | None]
ExceptionHandler = Callable[[Request, Exception], Awaitable[Response]]


STATUS_OF: Mapping[type[ServiceError], int] = {
    Unauthorized: 401,
    InvalidRequest: 422,
    TooManyAds: 422,
    UnsupportedMediaType: 415,
    BodyTooLarge: 413,
    RequestTimeout: 408,
    ClientGone: 400,
    QueueFull: 429,
    DeadlineUnreachable: 429,
    NotReady: 503,
    DeadlineExceeded: 504,
    InferenceFailed: 500,
    ServiceError: 500,
}

ADMIN_STATUS_OF: Mapping[type[ServiceError], int] = {
    ReloadRunning: 409,
    BundleRefused: 422,
    NotLive: 503,
}
"""Of what only probes and operators' routes answer: never the outcome of a request for scores."""


def error_codes() -> Iterator[str]:
    """Every code that the label `outcome` can have."""
    for error in STATUS_OF:
        yield error.code


def documented_errors(*errors: type[ServiceError]) -> Responses:
    """OpenAPI `responses=` from the same table that decides the statuses.

    Args:
        errors: That the route can answer; none means all of a route that scores.
    """
    statuses = {**STATUS_OF, **ADMIN_STATUS_OF}
    return error_responses(
        ErrorResponse,
        (
            (type(example), statuses[type(example)], error_body(example))
            for example in (*ERROR_EXAMPLES, *PROBE_EXAMPLES)
            if (type(example) in errors if errors else type(example) in STATUS_OF)
        ),
    )


def error_body(error: ServiceError) -> dict[str, Any]:
    """Our shape of an error."""
    return _body(error.code, error.message, error.details)


def _body(code: str, message: str, details: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "details": list(details)}}


def error_response(
    status: int,
    code: str,
    message: str,
    details: Sequence[Mapping[str, Any]] = (),
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The one shape of all error bodies."""
    return json_response(_body(code, message, details), status, headers)


def service_error_response(request: Request, error: ServiceError) -> Response:
    """What a caller gets for one of our errors."""
    status = {**STATUS_OF, **ADMIN_STATUS_OF}[type(error)]
    return json_response(error_body(error), status, error_headers(request, error))


def error_headers(request: Request, error: ServiceError) -> dict[str, str]:
    """The request's id, and what the error says about the next request."""
    headers = {REQUEST_ID_HEADER: request_id(request)}
    if isinstance(error, Overloaded):
        headers[RETRY_HEADER] = str(max(1, math.ceil(error.retry_after_s)))
    elif isinstance(error, RequestTimeout):
        headers["Connection"] = "close"  # nobody waits for the rest of the body
    elif isinstance(error, Unauthorized):
        # RFC 6750, section 3
        wrong = ', error="invalid_token"' if error.has_key else ""
        headers["WWW-Authenticate"] = f'Bearer realm="adrel"{wrong}'
    return headers


def unknown_error_response(request: Request) -> Response:
    """What a caller gets for a fault of ours: nothing of it, it goes to the log."""
    return service_error_response(request, ServiceError(INTERNAL_ERROR))


async def _on_service_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)  # noqa: S101  # registered for it alone
    return service_error_response(request, error)


def _on_http_exception(foreign_body: ForeignBody, what_there_is: str) -> ExceptionHandler:
    async def handle(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  # registered for it alone
        path, status = request.url.path, error.status_code
        # Other servers of ASGI than ours may pass on bytes that are not UTF-8, which JSON cannot.
        shown = path[:MAX_QUOTED_CHARS].encode("utf-8", "replace").decode()
        message = f"{request.method} {shown}: {error.detail}; {what_there_is}"
        headers = {REQUEST_ID_HEADER: request_id(request), **_with_head(error.headers or {})}
        foreign = foreign_body(path, status, message)
        if foreign is not None:
            return json_response(foreign, status, headers)
        codes = {404: "not_found", 405: "method_not_allowed"}
        code = codes.get(status, "http_error")
        return error_response(status, code, message, headers=headers)

    return handle


def _with_head(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers, with HEAD beside GET in Allow: `Front` answers it wherever GET is."""
    if "Allow" not in headers:
        return dict(headers)
    methods = set(headers["Allow"].split(", "))
    methods |= {"HEAD"} if "GET" in methods else set()
    return {**headers, "Allow": ", ".join(sorted(methods))}


def _on_unknown_error(foreign_body: ForeignBody) -> ExceptionHandler:
    async def handle(request: Request, _: Exception) -> Response:
        # The server writes the traceback to the log.
        foreign = foreign_body(request.url.path, 500, INTERNAL_ERROR)
        if foreign is None:
            return unknown_error_response(request)
        return json_response(foreign, 500, {REQUEST_ID_HEADER: request_id(request)})

    return handle


def install(
    app: FastAPI, foreign_body: ForeignBody = lambda *_: None, what_there_is: str = "see /docs"
) -> None:
    """Answer every error of `app` in our shape.

    Args:
        app: The application.
        foreign_body: From path, status and message the body for a path or method that does not
            exist, or for a fault of ours, where the path is another protocol's; None elsewhere.
        what_there_is: Said beside a path or method that does not exist.
    """
    app.add_exception_handler(ServiceError, _on_service_error)
    app.add_exception_handler(HTTPException, _on_http_exception(foreign_body, what_there_is))
    app.add_exception_handler(Exception, _on_unknown_error(foreign_body))
