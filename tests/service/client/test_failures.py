from __future__ import annotations

import copy
import pickle
import socket
import ssl

import httpcore
import httpx
import pytest

from service.api.error_handlers import STATUS_OF
from service.client import (
    AdrelError,
    BadAnswer,
    ConnectionFailed,
    DeadlineExceeded,
    NotReady,
    Overloaded,
    RequestRefused,
    ServiceFailed,
    WrongEndpoint,
)
from service.client import errors as client_errors
from service.client.connections import ClosedWhileIdle
from service.client.failures import error_of_network, error_of_status
from tests.service.client.stand_ins import refusal


def error_of(response: httpx.Response) -> AdrelError:
    return error_of_status(response.status_code, response.headers, response.content)


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (422, "invalid_request", RequestRefused),
        (422, "too_many_ads", RequestRefused),
        (415, "unsupported_media_type", RequestRefused),
        (413, "body_too_large", RequestRefused),
        (404, "not_found", WrongEndpoint),
        (405, "method_not_allowed", WrongEndpoint),
        (408, "request_timeout", ServiceFailed),
        (400, "client_gone", ServiceFailed),
        (431, "head_too_large", ServiceFailed),
        (409, "some_refusal_of_a_newer_service", ServiceFailed),
        (429, "queue_full", Overloaded),
        (429, "deadline_unreachable", Overloaded),
        (503, "not_ready", NotReady),
        (504, "deadline_exceeded", DeadlineExceeded),
        (500, "inference_failed", ServiceFailed),
        (500, "internal_error", ServiceFailed),
    ],
)
def test_an_error_body_becomes_its_kind_with_all_that_it_says(
    status: int, code: str, kind: type[AdrelError]
) -> None:
    error = error_of(refusal(status, code, [{"field": "query"}]))
    assert type(error) is kind
    assert (error.code, error.http_status) == (code, status)
    assert error.message == f"because of {code}"
    assert error.details == ({"field": "query"},)
    assert str(error) == f"{code}: because of {code}"


def test_every_error_of_the_service_has_a_kind_of_its_own_here() -> None:
    for error, status in STATUS_OF.items():
        assert type(error_of(refusal(status, error.code))) is not BadAnswer


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadAnswer),
        (401, WrongEndpoint),
        (403, WrongEndpoint),
        (404, WrongEndpoint),
        (405, WrongEndpoint),
        (413, RequestRefused),
        (502, ServiceFailed),
        (503, NotReady),
    ],
)
def test_a_proxys_page_is_named_by_its_status_and_never_taken_for_the_services_word(
    status: int, kind: type[AdrelError]
) -> None:
    error = error_of(httpx.Response(status, text="<html>no route</html>"))
    assert type(error) is kind
    assert error.code == f"http_{status}"
    assert "no route" in error.message


def test_a_redirect_is_a_wrong_address_and_says_where_it_leads() -> None:
    error = error_of(httpx.Response(301, headers={"Location": "https://adrel.test/v1/score"}))
    assert isinstance(error, WrongEndpoint)
    assert str(error) == "http_301: leads to 'https://adrel.test/v1/score'"


def test_the_services_own_milliseconds_win_over_the_header_in_whole_seconds() -> None:
    exact = refusal(429, "queue_full", [{"retry_after_ms": 12.5}], Retry_After="1")
    assert error_of(exact).retry_after_s == 0.0125
    assert error_of(refusal(429, "queue_full", Retry_After="2")).retry_after_s == 2


@pytest.mark.parametrize("header", ["", "soon", "-1", "1.5", "٣", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_header_that_is_no_number_of_seconds_names_no_time(header: str) -> None:
    headers = {"retry-after": header}
    assert error_of_status(429, headers, b"").retry_after_s is None


@pytest.mark.parametrize("after_ms", ["5", None, -1, float("nan"), float("inf"), [1]])
def test_details_that_are_no_time_are_passed_over(after_ms: object) -> None:
    response = refusal(429, "queue_full", Retry_After="3")
    body = f'{{"error":{{"code":"c","message":"m","details":[{{"retry_after_ms":{after_ms!r}}}]}}}}'
    content = body.replace("'", '"').replace("None", "null").replace("nan", "NaN")
    content = content.replace("inf}", "Infinity}")
    assert error_of_status(429, response.headers, content.encode()).retry_after_s == 3


def test_a_timeout_of_any_step_is_the_end_of_time() -> None:
    for kind in (httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ReadTimeout, httpx.WriteTimeout):
        assert error_of_network(kind("late")) is None


@pytest.mark.parametrize(
    ("kind", "unread"),
    [
        (httpx.ConnectError, True),
        (ClosedWhileIdle, True),
        (httpx.ReadError, False),
        (httpx.WriteError, False),
        (httpx.RemoteProtocolError, False),
    ],
)
def test_a_broken_connection_says_whether_the_request_was_read(
    kind: type[httpx.RequestError], unread: bool
) -> None:
    error = error_of_network(kind("broken"))
    assert isinstance(error, ConnectionFailed)
    assert error.unread is unread
    assert error.http_status is None


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "unknown_host"),
        (ssl.SSLCertVerificationError("self-signed certificate"), "tls_failed"),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), "tls_failed"),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution"), None),
        (ssl.SSLEOFError(8, "EOF occurred in violation of protocol"), None),
        (ConnectionRefusedError(111, "Connection refused"), None),
    ],
)
def test_an_address_that_stays_wrong_is_told_from_one_that_does_not_answer_now(
    cause: Exception, code: str | None
) -> None:
    below, above = httpcore.ConnectError(str(cause)), httpx.ConnectError(str(cause))
    below.__cause__, above.__cause__ = cause, below
    error = error_of_network(above)
    if code is None:
        assert isinstance(error, ConnectionFailed)
        assert error.unread
    else:
        assert isinstance(error, WrongEndpoint)
        assert error.code == code
    assert error is not None
    assert str(cause) in error.message


def test_a_request_that_cannot_be_written_is_not_quoted() -> None:
    error = error_of_network(httpx.LocalProtocolError("Illegal header value b'Bearer s3cr3t'"))
    assert isinstance(error, WrongEndpoint)
    assert "s3cr3t" not in str(error)


def test_errors_survive_a_trip_between_processes() -> None:
    for error in (ConnectionFailed("m", True), Overloaded("queue_full", "m", [{"a": 1}], 0.5, 429)):
        for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301  # ours
            assert type(copied) is type(error)
            assert vars(copied) == vars(error)


def test_the_tree_in_the_docstring_names_every_error() -> None:
    for error in AdrelError.__subclasses__():
        assert error.__name__ in (client_errors.__doc__ or "")
