"""The blocking client against a service that follows a script, in a time that it makes pass."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client import (
    Ad,
    AdrelClient,
    AdrelError,
    AdStatus,
    BadAnswer,
    ConnectionFailed,
    DeadlineExceeded,
    NotReady,
    Overloaded,
    RequestRefused,
    RetryPolicy,
    ServiceFailed,
    WrongEndpoint,
)
from service.client.connections import ClosedWhileIdle
from tests.service.client.stand_ins import (
    ADS,
    BASE_URL,
    FakeService,
    FakeTime,
    answer_to,
    blocking_client,
    overloaded,
    refusal,
)


def test_a_call_asks_the_score_route_and_returns_typed_results() -> None:
    service = FakeService()
    with blocking_client(service) as client:
        result = client.score("shoe", ADS, min_score=0.55, request_id="auction-7")
    assert [(ad.id, ad.score, ad.eligible) for ad in result.scores] == [
        ("A", 0.5, False),
        ("B", 0.6, True),
    ]
    assert result.complete
    assert (result.request_id, result.attempts, result.error) == ("auction-7", 1, None)
    assert result.model is not None
    assert result.model.name == "tiny"
    (request,) = service.requests
    assert (request.method, request.url.path) == ("POST", "/v1/score")
    assert request.headers["content-type"] == "application/json"
    assert int(request.headers["content-length"]) == len(request.content)
    assert "transfer-encoding" not in request.headers


def test_a_path_in_the_base_url_and_headers_of_the_caller_are_kept() -> None:
    service = FakeService()
    with AdrelClient(
        "https://ads.test/adrel/",
        timeout_ms=50,
        headers={"Authorization": "Bearer x"},
        transport=httpx.MockTransport(service),
    ) as client:
        client.score("shoe", ADS)
    assert str(service.requests[0].url) == "https://ads.test/adrel/v1/score"
    assert service.requests[0].headers["authorization"] == "Bearer x"


def test_the_service_is_told_what_is_left_less_the_margin() -> None:
    service = FakeService()
    with blocking_client(service, timeout_ms=100) as client:
        client.score("shoe", ADS)
        client.score("shoe", ADS, timeout_ms=40)
    assert [asked["timeout_ms"] for asked in service.asked] == pytest.approx([98, 38])
    assert service.requests[1].extensions["timeout"]["read"] == pytest.approx(0.04)


def test_a_retry_gets_only_what_is_left_then() -> None:
    time, service = FakeTime(), FakeService([overloaded(30)])
    with blocking_client(service, time, retry=RetryPolicy(base_ms=4)) as client:
        result = client.score("shoe", ADS)
    assert time.waits_s == pytest.approx([0.032])
    assert service.asked[1]["timeout_ms"] == pytest.approx(66)
    assert service.requests[1].extensions["timeout"]["read"] == pytest.approx(0.068)
    assert result.attempts == 2
    assert result.elapsed_ms == pytest.approx(32)


def test_a_service_that_says_when_is_asked_again_then_and_not_sooner() -> None:
    time, service = FakeTime(), FakeService([refusal(429, "queue_full", Retry_After="1")])
    with blocking_client(service, time, timeout_ms=2000) as client:
        assert client.score("shoe", ADS).complete
    assert time.waits_s[0] >= 1


@pytest.mark.parametrize(
    "failure",
    [
        refusal(503, "not_ready"),
        httpx.ConnectError("refused"),
        ClosedWhileIdle("closed"),
    ],
)
def test_what_was_not_received_is_sent_once_more(failure: httpx.Response | Exception) -> None:
    service = FakeService([failure])
    with blocking_client(service) as client:
        assert client.score("shoe", ADS).attempts == 2


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (refusal(422, "invalid_request"), RequestRefused),
        (refusal(413, "body_too_large"), RequestRefused),
        (refusal(415, "unsupported_media_type"), RequestRefused),
        (refusal(500, "inference_failed"), ServiceFailed),
        (refusal(504, "deadline_exceeded"), DeadlineExceeded),
        (httpx.Response(503, text="no healthy upstream"), NotReady),
        (httpx.Response(429, text="a proxy's limit"), Overloaded),
        (httpx.Response(200, text="<html>"), BadAnswer),
        (refusal(404, "not_found"), WrongEndpoint),
        (httpx.Response(401, text="who are you?"), WrongEndpoint),
        (httpx.Response(308, headers={"location": "https://x"}), WrongEndpoint),
        (httpx.ReadTimeout("late"), DeadlineExceeded),
        (httpx.ConnectTimeout("late"), DeadlineExceeded),
        (httpx.RemoteProtocolError("illegal status line"), ConnectionFailed),
        (httpx.ReadError("reset"), ConnectionFailed),
        (httpx.LocalProtocolError("Illegal header value b'key'"), WrongEndpoint),
    ],
)
def test_all_else_is_asked_once(
    failure: httpx.Response | Exception, kind: type[AdrelError]
) -> None:
    service = FakeService([failure])
    with blocking_client(service, timeout_ms=10_000) as client, pytest.raises(kind):
        client.score("shoe", ADS)
    assert len(service.requests) == 1


def test_a_request_that_cannot_be_written_shows_nobody_its_headers() -> None:
    service = FakeService([httpx.LocalProtocolError("Illegal header value b'Bearer s3cr3t'")])
    with blocking_client(service) as client, pytest.raises(WrongEndpoint) as caught:
        client.score("shoe", ADS)
    assert "s3cr3t" not in "".join(traceback.format_exception(caught.value))


def test_an_answer_that_breaks_off_is_not_asked_for_again() -> None:
    class BrokenOff(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b'{"request_id"'
            raise httpx.ReadError("reset")

    service = FakeService([httpx.Response(200, stream=BrokenOff())])
    with blocking_client(service) as client, pytest.raises(ConnectionFailed):
        client.score("shoe", ADS)
    assert len(service.requests) == 1


def test_an_answer_that_repeats_long_ids_is_not_too_long() -> None:
    with blocking_client(FakeService()) as client:
        assert client.score("shoe", [Ad("A" * 256, "shoe")] * 300).complete


@pytest.mark.parametrize("status", [200, 503])
def test_of_an_endless_answer_no_more_is_read_than_an_answer_can_have(status: int) -> None:
    taken_bytes = 0

    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            nonlocal taken_bytes
            while taken_bytes < 50_000_000:
                taken_bytes += 10_000
                yield b" " * 10_000

    service = FakeService([httpx.Response(status, stream=Endless())])
    with blocking_client(service) as client, pytest.raises(BadAnswer, match="bytes") as caught:
        client.score("shoe", ADS)
    assert taken_bytes < 100_000
    assert caught.value.http_status == status


def test_a_service_that_refuses_everything_sees_a_tenth_more_requests_not_twice_as_many() -> None:
    asked = 0

    def refuse(_: httpx.Request) -> httpx.Response:
        nonlocal asked
        asked += 1
        return overloaded(1)

    with blocking_client(refuse) as client:
        for _ in range(500):
            with pytest.raises(Overloaded):
                client.score("shoe", ADS)
    assert asked == pytest.approx(500 + 50 + 10, abs=2)  # a tenth, and what was saved up


FAILURES: dict[str, Callable[[], httpx.Response]] = {
    "busy": lambda: overloaded(7),
    "busy for long": lambda: overloaded(400),
    "not ready": lambda: refusal(503, "not_ready"),
    "late": lambda: refusal(504, "deadline_exceeded"),
}


@given(
    script=st.lists(
        st.tuples(
            st.sampled_from(["busy", "busy for long", "not ready", "refused", "closed", "late"]),
            st.floats(0, 0.06),
        ),
        max_size=8,
    ),
    timeout_ms=st.floats(0.5, 300),
    max_attempts=st.integers(1, 5),
    chance=st.floats(0, 1),
)
def test_no_call_outlives_its_deadline_or_asks_too_often(
    script: list[tuple[str, float]], timeout_ms: float, max_attempts: int, chance: float
) -> None:
    time = FakeTime()
    ends_s = time.now_s + timeout_ms / 1000
    told = FakeService()
    coming = iter(script)

    def take(request: httpx.Request) -> httpx.Response:
        what, takes_s = next(coming, ("ok", 0.001))
        given_s = request.extensions["timeout"]["read"]
        assert given_s <= ends_s - time.now_s + 1e-9
        response = told(request)
        assert told.asked[-1]["timeout_ms"] <= (ends_s - time.now_s) * 1000 + 1e-5
        time.now_s += min(takes_s, given_s)
        if takes_s >= given_s:
            raise httpx.ReadTimeout("late")
        if what == "refused":
            raise httpx.ConnectError("refused")
        if what == "closed":
            raise ClosedWhileIdle("closed")
        return response if what == "ok" else FAILURES[what]()

    retry = RetryPolicy(max_attempts=max_attempts, budget_burst=100)
    client = blocking_client(take, time, timeout_ms=timeout_ms, retry=retry, chance=chance)
    with client:
        result = client.score_or_fallback("shoe", ADS, lambda *_: 0.0)
    assert time.now_s <= ends_s + 1e-9
    assert len(told.requests) == result.attempts <= max_attempts
    assert [ad.id for ad in result.scores] == ["A", "B"]


@pytest.mark.parametrize(
    ("failure", "status"),
    [
        (overloaded(5000), AdStatus.FAILED),
        (refusal(503, "not_ready"), AdStatus.FAILED),
        (refusal(500, "internal_error"), AdStatus.FAILED),
        (refusal(504, "deadline_exceeded"), AdStatus.DEADLINE),
        (httpx.ReadTimeout("late"), AdStatus.DEADLINE),
        (httpx.ConnectError("refused"), AdStatus.FAILED),
        (httpx.Response(404, text="default backend"), AdStatus.FAILED),
        (refusal(404, "not_found"), AdStatus.FAILED),
        (refusal(401, "unauthorized"), AdStatus.FAILED),
        (refusal(408, "request_timeout"), AdStatus.FAILED),
        (refusal(400, "client_gone"), AdStatus.FAILED),
        (refusal(431, "head_too_large"), AdStatus.FAILED),
        (refusal(410, "gone"), AdStatus.FAILED),
        (httpx.Response(200, text="<html>"), AdStatus.FAILED),
    ],
)
def test_with_a_fallback_an_auction_always_gets_an_answer(
    failure: httpx.Response | Exception, status: AdStatus
) -> None:
    def fallback(query: str, ad: Ad) -> float | None:
        return 0.5 if (query, ad.id) == ("shoe", "A") else None

    service = FakeService([failure])
    with blocking_client(service, retry=RetryPolicy(max_attempts=1)) as client:
        result = client.score_or_fallback("shoe", ADS, fallback, request_id="auction-8")
    assert [(ad.id, ad.score, ad.status) for ad in result.scores] == [
        ("A", 0.5, AdStatus.FALLBACK),
        ("B", None, status),
    ]
    assert isinstance(result.error, AdrelError)
    assert (result.request_id, result.model, result.complete) == ("auction-8", None, False)


def test_a_partial_answer_is_filled_and_keeps_what_the_model_gave() -> None:
    def partial(request: httpx.Request) -> httpx.Response:
        scores = [{"id": "A", "score": 0.9, "status": "cached"},
                  {"id": "B", "score": None, "status": "failed"}]  # fmt: skip
        return httpx.Response(200, json=answer_to(json.loads(request.content), scores=scores))

    with blocking_client(partial) as client:
        assert [ad.score for ad in client.score("shoe", ADS).scores] == [0.9, None]
        result = client.score_or_fallback("shoe", ADS, lambda *_: 0.1)
    assert [ad.status for ad in result.scores] == [AdStatus.CACHED, AdStatus.FALLBACK]
    assert result.error is None
    assert result.model is not None


def test_a_wrong_request_is_raised_although_there_is_a_fallback() -> None:
    service = FakeService([refusal(422, "invalid_request", [{"field": "query"}])])
    with blocking_client(service) as client, pytest.raises(RequestRefused) as caught:
        client.score_or_fallback("too long", ADS, lambda *_: 0.5)
    assert caught.value.details == ({"field": "query"},)


def test_a_wait_that_takes_longer_than_it_should_is_the_last() -> None:
    time, service = FakeTime(), FakeService([refusal(503, "not_ready")])
    client = AdrelClient(
        "http://adrel.test",
        timeout_ms=100,
        transport=httpx.MockTransport(service),
        clock=time.clock,
        sleep=lambda _: time.sleep(0.2),
    )
    with client, pytest.raises(DeadlineExceeded, match="attempts: 1"):
        client.score("shoe", ADS)
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"min_scoer": 0.5},
            "min_scoer: no such option; there are timeout_ms, priority, min_score",
        ),
        ({"timeout_ms": 0}, "timeout_ms: takes a number of milliseconds from 0.001 to 60000"),
        ({"timeout_ms": 60_001}, "timeout_ms: takes a number of milliseconds from 0.001 to 60000"),
        ({"timeout_ms": None}, "timeout_ms: takes a number of milliseconds"),
        ({"timeout_ms": "50"}, "timeout_ms: takes a number of milliseconds"),
        ({"query": b"shoe"}, "query: takes str"),
        ({"ads": ADS[0]}, "ads: takes a sequence of Ad, got a single one"),
        ({"ads": [{"id": "A", "title": "shoe"}]}, "ads.0.: takes Ad, got dict"),
        ({"min_score": 2}, "min_score: takes a number from 0 to 1"),
        ({"priority": "high"}, "priority: takes 'auction' or 'batch'"),
        ({"fallback": 0.5}, "fallback: takes a plain function"),
    ],
)
def test_a_wrong_argument_is_named_before_anything_is_sent(
    changes: dict[str, Any], message: str
) -> None:
    service = FakeService()
    arguments = {"query": "shoe", "ads": ADS, "fallback": lambda *_: 0.5, **changes}
    with blocking_client(service) as client:
        with pytest.raises((TypeError, ValueError), match=f"^{message}"):
            client.score_or_fallback(**arguments)
        del arguments["fallback"]
        if "fallback" not in changes:
            with pytest.raises((TypeError, ValueError), match=f"^{message}"):
                client.score(**arguments)
    assert service.requests == []


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"base_url": "http://adrel:99999"}, "base_url"),
        ({"timeout_ms": 0}, "timeout_ms"),
        ({"timeout_ms": None}, "timeout_ms"),
        ({"timeout_ms": 60_001}, "timeout_ms"),
        ({"network_margin_ms": -1}, "network_margin_ms"),
        ({"network_margin_ms": "2"}, "network_margin_ms"),
        ({"retry": 3}, "retry"),
        ({"headers": {"Content-Length": "1"}}, "headers"),
        ({"headers": {"X-Key": " k"}}, "headers"),
        ({"transport": httpx.AsyncHTTPTransport}, "transport"),
        ({"clock": None}, "clock: takes a function, got None"),
        ({"sleep": None}, "sleep: takes a function, got None"),
        ({"random": 0.5}, "random: takes a function, got float 0.5"),
    ],
)
def test_a_client_that_cannot_work_is_refused_by_name(changes: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{name}"):
        AdrelClient(**{"base_url": BASE_URL, "timeout_ms": 50, **changes})


def test_a_closed_client_sends_nothing() -> None:
    service = FakeService()
    client = blocking_client(service)
    client.close()
    with pytest.raises(RuntimeError, match="this client is closed"):
        client.score_or_fallback("shoe", ADS, lambda *_: 0.5)
    assert service.requests == []
