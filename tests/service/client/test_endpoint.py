from __future__ import annotations

import pytest

from service.client.endpoint import Endpoint

KEY = "0123456789abcdef"


def headers_of(endpoint: Endpoint) -> dict[str, str]:
    return dict(endpoint.request(lambda: b"{}", 2, KEY).headers)


@pytest.mark.parametrize(
    ("base_url", "url", "host"),
    [
        ("http://adrel.test", "http://adrel.test/v1/score", "adrel.test"),
        ("HTTP://adrel.test:80/", "http://adrel.test/v1/score", "adrel.test"),
        ("https://ads.test:8443/a/b/", "https://ads.test:8443/a/b/v1/score", "ads.test:8443"),
        ("http://ads.test/a%20b", "http://ads.test/a%20b/v1/score", "ads.test"),
        ("http://[::1]:8000", "http://[::1]:8000/v1/score", "[::1]:8000"),
        ("http://bücher.test", "http://xn--bcher-kva.test/v1/score", "xn--bcher-kva.test"),
        (f"http://{'a' * 63}.test.", f"http://{'a' * 63}.test./v1/score", f"{'a' * 63}.test."),
        ("http://127.0.0.1:65535", "http://127.0.0.1:65535/v1/score", "127.0.0.1:65535"),
    ],
)
def test_the_route_lies_under_the_base_url(base_url: str, url: str, host: str) -> None:
    request = Endpoint(base_url, None).request(lambda: b"{}", 2, KEY)
    assert (request.method, str(request.url)) == ("POST", url)
    assert request.headers["host"] == host


def test_a_request_says_what_it_sends_and_takes_no_packed_answer() -> None:
    assert headers_of(Endpoint("http://adrel.test", None)) == {
        "host": "adrel.test",
        "user-agent": "adrel-client",
        "content-type": "application/json",
        "accept-encoding": "identity",
        "content-length": "2",
        "x-affinity-key": KEY,
    }


def test_a_callers_headers_are_sent_and_may_name_the_caller() -> None:
    given = {"user-agent": "auction/2", "X-Key": "k", "X-Empty": "", "x-spaced": "a \t b"}
    headers = headers_of(Endpoint("http://adrel.test", given))
    assert headers["user-agent"] == "auction/2"
    assert (headers["x-key"], headers["x-empty"], headers["x-spaced"]) == ("k", "", "a \t b")


def test_one_request_leaves_nothing_in_the_next() -> None:
    endpoint = Endpoint("http://adrel.test", None)
    first = endpoint.request(lambda: b"{}", 2, KEY)
    first.headers["X-Odd"] = "1"
    assert "x-odd" not in headers_of(endpoint)


@pytest.mark.parametrize(
    ("base_url", "problem"),
    [
        ("", "http://host or https://host"),
        ("adrel:8000", "http://host or https://host"),
        ("/v1", "http://host or https://host"),
        ("ftp://adrel", "http://host or https://host"),
        ("http://", "http://host or https://host"),
        ("http://a:b", "Invalid port"),
        ("http://adrel:0", "a port from 1 to 65535"),
        ("http://adrel:65536", "a port from 1 to 65535"),
        ("http://adrel:99999", "a port from 1 to 65535"),
        ("http://adrel/?x=1", "no query and no fragment"),
        ("http://adrel/?", "no query and no fragment"),
        ("http://adrel/#top", "no query and no fragment"),
        ("http://me:secret@adrel", "an Authorization header"),
        ("http://me:secret@a..b", "an Authorization header"),
        ("http://a..b", "names no host"),
        ("http://.", "names no host"),
        (f"http://{'a' * 64}.test", "names no host"),
        ("http://xn--zzzz", "names no host"),
    ],
)
def test_a_base_url_that_cannot_work_is_told_what_is_taken(base_url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"base_url: .*{problem}") as caught:
        Endpoint(base_url, None)
    assert "secret" not in str(caught.value)


def test_a_base_url_that_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="base_url: takes str, got None"):
        Endpoint(None, None)  # type: ignore[arg-type]  # wrong on purpose


@pytest.mark.parametrize(
    ("headers", "problem"),
    [
        ({"X Key": "k"}, "'X Key' is no name of a header"),
        ({"": "k"}, "'' is no name of a header"),
        ({"X-Key": "k\r\nX-Other: 1"}, "takes printable ASCII"),
        ({"X-Key": "schlüssel"}, "takes printable ASCII"),
        ({"X-Key": " k"}, "no blank at either end"),
        ({"X-Key": "k\t"}, "no blank at either end"),
        ({"X-Key": " "}, "no blank at either end"),
        ({"content-length": "5"}, "is the client's own"),
        ({"HOST": "other.test"}, "is the client's own"),
        ({"Content-type": "text/plain"}, "is the client's own"),
        ({"Accept-Encoding": "gzip"}, "is the client's own"),
        ({"Transfer-Encoding": "chunked"}, "is the client's own"),
        ({"connection": "close"}, "is the client's own"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused(headers: dict[str, str], problem: str) -> None:
    with pytest.raises(ValueError, match=f"headers.*{problem}"):
        Endpoint("http://adrel.test", headers)


@pytest.mark.parametrize("value", ["Bearer s3cr3t\n", " Bearer s3cr3t", b"Bearer s3cr3t"])
def test_a_header_is_refused_by_its_name_and_its_value_is_not_told(value: str) -> None:
    with pytest.raises((TypeError, ValueError), match="Authorization") as caught:
        Endpoint("http://adrel.test", {"Authorization": value})
    assert "s3cr3t" not in str(caught.value)


@pytest.mark.parametrize("headers", [[("X-Key", "k")], {"X-Key": 1}, {1: "k"}, "X-Key: k"])
def test_headers_of_other_types_are_refused(headers: object) -> None:
    with pytest.raises(TypeError, match="headers"):
        Endpoint("http://adrel.test", headers)  # type: ignore[arg-type]  # wrong on purpose
