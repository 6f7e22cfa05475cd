"""What callers in other languages give the client, and what it says of that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.deploy.clients.driver import Caller
from tests.deploy.clients.stand_in_server import Hangs, standing_in
from tests.deploy.clients.test_calls import ADS, QUERY, SHORT_MS


def test_a_header_goes_with_every_request(caller: Caller) -> None:
    with standing_in() as server:
        for _ in range(2):
            caller.call(server.url, QUERY, ADS, header="authorization: Bearer key-1")
        caller.call(server.url, QUERY, ADS)
    sent = [headers.get("authorization") for headers in server.headers]
    assert sent == ["Bearer key-1", "Bearer key-1", None]


def test_a_header_does_not_replace_the_clients_own(caller: Caller) -> None:
    with standing_in() as server:
        caller.call(server.url, QUERY, ADS, header="content-type: text/plain")
        caller.call(server.url, QUERY, ADS, header="x-request-timeout-ms: 5")
        caller.call(server.url, QUERY, ADS, header="accept-encoding: gzip")
    assert server.headers[0]["content-type"] == "application/json"
    assert float(server.headers[1]["x-request-timeout-ms"]) > 5
    assert server.headers[2]["accept-encoding"] == "identity"


@pytest.mark.parametrize(
    ("header", "named"),
    [
        ("Authorization: Bearer secret\n", "Authorization"),
        ("X-Team: größe", "X-Team"),
        ("X Team: a", "X Team"),
        ("Host: elsewhere", "Host"),
        ("content-length: 1", "content-length"),
    ],
)
def test_a_header_that_cannot_be_sent_is_refused_by_name(
    caller: Caller, header: str, named: str
) -> None:
    with standing_in() as server:
        failed = caller.call(server.url, QUERY, ADS, fallback=True, header=header)
    assert failed.raised
    assert "headers" in failed.message
    assert named in failed.message
    assert "secret" not in failed.message
    assert server.asked == []


@pytest.mark.parametrize(
    "url",
    [
        "",
        "127.0.0.1:8000",
        "localhost:8000",
        "/v1",
        "ftp://127.0.0.1",
        "http://",
        "http:127.0.0.1",
        "http://127.0.0.1:port",
        "http://127.0.0.1:0",
        "http://127.0.0.1:65536",
        "http://127.0.0.1:8000?a=b",
        "http://127.0.0.1:8000/#there",
        "http://me:secret@127.0.0.1:8000",
        " http://127.0.0.1:8000",
        "http://127.0.0.1:8000/a b\n",
    ],
)
def test_a_url_that_cannot_work_is_refused_when_the_client_is_made(
    caller: Caller, url: str
) -> None:
    failed = caller.call(url, QUERY, ADS, fallback=True)
    assert failed.raised
    assert "baseurl: takes" in failed.message.lower()
    assert "secret" not in failed.message


def test_a_timeout_of_nothing_is_refused(caller: Caller) -> None:
    failed = caller.call("http://127.0.0.1:9", QUERY, ADS, timeout_ms=0, fallback=True)
    assert failed.raised
    assert "timeout" in failed.message


@pytest.mark.parametrize("score", ["NaN", "7", "-0.1", "Infinity"])
def test_a_fallback_that_gives_no_score_is_named(caller: Caller, score: str) -> None:
    with standing_in(Hangs()) as server:
        failed = caller.call(server.url, QUERY, ADS, timeout_ms=SHORT_MS, fallback=score)
    assert failed.raised
    assert 'the fallback\'s score for ad "A": takes a number from 0 to 1' in failed.message


@pytest.mark.parametrize("score", ["0", "1"])
def test_a_fallback_may_be_sure(caller: Caller, score: str) -> None:
    with standing_in(Hangs()) as server:
        filled = caller.call(server.url, QUERY, ADS, timeout_ms=SHORT_MS, fallback=score)
    assert [ad.score for ad in filled.ads] == [float(score)] * 2


@pytest.mark.parametrize("built", ["go"], indirect=True, scope="package")
@pytest.mark.parametrize("field", ["query", "id", "title", "description", "text"])
def test_bytes_that_are_not_utf_8_are_refused_by_name(caller: Caller, field: str) -> None:
    broken = "caf\udce9"  # sent as the byte E9
    query = broken if field == "query" else QUERY
    ad = ADS[1] if field == "query" else replace(ADS[1], **{field: broken})
    with standing_in() as server:
        failed = caller.call(server.url, query, [ADS[0], ad], fallback=True)
        caller.call(server.url, query, [ADS[0], ad])
    assert (failed.raised, failed.code, failed.http_status) == (True, "invalid_request", 0)
    assert server.asked == []
    named = "query" if field == "query" else f"ads[1].{field}"
    assert f"{named}: takes UTF-8" in failed.message
