"""The start and the end of a request of a counted route: its clock, and who hears of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from fastapi import Request

from service.api.error_handlers import STATUS_OF
from service.api.request_ids import RECORD_KEY, id_of_headers
from service.api.state import ServiceState, state_of
from service.domain import Priority
from service.request_record import RequestRecord

TOO_MANY_REQUESTS = 429

CALLERS_FAULTS = frozenset(
    error.code
    for error, status in STATUS_OF.items()
    if 400 <= status < 500 and status != TOO_MANY_REQUESTS
)
"""Outcomes that say nothing of the service, callers that left included."""


def begin(request: Request, route: str) -> RequestRecord:
    """Start the request's clock and its record.

    Args:
        request: The HTTP request; `record_of` finds the record in it.
        route: The metrics' label.
    """
    state = state_of(request)
    started_s = state.clock.now_s() if state.clock is not None else 0.0  # None: it is loading
    headers = request.headers
    record = RequestRecord(route, started_s, headers, id_of_headers(headers))
    request.scope[RECORD_KEY] = record
    state.metrics.requests.started()
    return record


def record_of(request: Request) -> RequestRecord:
    """The record that `begin` put into the request."""
    record = request.scope[RECORD_KEY]
    assert isinstance(record, RequestRecord)  # noqa: S101  # begin set it
    return record


def end(state: ServiceState, record: RequestRecord, outcome: str) -> None:
    """Tell everyone who wants to hear how the request ended.

    Args:
        state: The service.
        record: Of the request.
        outcome: `ok`, `partial` or the code of an error.
    """
    record.outcome = outcome
    if state.clock is not None:
        record.duration_s = state.clock.now_s() - record.started_s
    state.metrics.requests.done(record.route, outcome, record.duration_s, record.n_ads)
    result = auction_result(record)
    if result is not None:
        state.metrics.requests.auction_done(result)
    for listener in state.request_listeners:
        listener(record)


def once_answered(*listeners: Callable[[RequestRecord], None]) -> Callable[[RequestRecord], None]:
    """A listener that calls these, in order, after the answer has gone to the connection."""
    loop = asyncio.get_running_loop()

    def told(record: RequestRecord) -> None:
        for listener in listeners:
            loop.call_soon(listener, record)

    return told


def auction_result(record: RequestRecord) -> str | None:
    """What an auction got: `in_time`, `late`, `partial` or `nothing`.

    None for bulk work and for requests that ended by a fault of their caller.
    """
    if record.priority is not Priority.AUCTION or record.outcome in CALLERS_FAULTS:
        return None
    if record.outcome not in ("ok", "partial"):
        return "nothing"
    if record.slack_s < 0:
        return "late"
    return "in_time" if record.outcome == "ok" else "partial"
