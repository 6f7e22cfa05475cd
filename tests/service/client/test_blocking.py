"""The blocking client against a service that follows a script, in a time that it makes pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

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
)
from tests.service.client.stand_ins import (
    ADS,
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
        httpx.RemoteProtocolError("Server disconnected without sending a response."),
        httpx.ReadError("reset"),
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
        (httpx.ReadTimeout("late"), DeadlineExceeded),
        (httpx.ConnectTimeout("late"), DeadlineExceeded),
    ],
)
def test_all_else_is_asked_once(
    failure: httpx.Response | Exception, kind: type[AdrelError]
) -> None:
    service = FakeService([failure])
    with blocking_client(service, timeout_ms=10_000) as client, pytest.raises(kind):
        client.score("shoe", ADS)
    assert len(service.requests) == 1


def test_an_answer_that_breaks_off_is_not_asked_for_again() -> None:
    class BrokenOff(httpx.SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            yield b'{"request_id"'
            raise httpx.ReadError("reset")

    service = FakeService([httpx.Response(200, stream=BrokenOff())])
    with blocking_client(service) as client, pytest.raises(ConnectionFailed) as caught:
        client.score("shoe", ADS)
    assert caught.value.answer_begun
    assert len(service.requests) == 1


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
            raise httpx.RemoteProtocolError("closed")
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
    def partial(_: httpx.Request) -> httpx.Response:
        scores = [{"id": "A", "score": 0.9, "status": "cached"},
                  {"id": "B", "score": None, "status": "failed"}]  # fmt: skip
        return httpx.Response(200, json=answer_to({"ads": []}, scores=scores))

    with blocking_client(partial) as client:
        assert [ad.score for ad in client.score("shoe", ADS).scores] == [0.9, None]
        result = client.score_or_fallback("shoe", ADS, lambda *_: 0.1)
    assert [ad.status for ad in result.scores] == [AdStatus.CACHED, AdStatus.FALLBACK]
    assert result.error is None
    assert result.model is not None


def test_a_wrong_request_is_raised_although_there_is_a_fallback() -> None:
    service = FakeService([refusal(422, "invalid_request", [{"field": "query"}])])
    with blocking_client(service) as client, pytest.raises(RequestRefused) as caught:
        client.score_or_fallback(" ", ADS, lambda *_: 0.5)
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


def test_a_misspelt_option_or_a_bad_number_is_raised_before_anything_is_sent() -> None:
    service = FakeService()
    with blocking_client(service) as client:
        with pytest.raises(TypeError, match="min_scoer"):
            client.score("shoe", ADS, min_scoer=0.5)  # type: ignore[call-arg]  # wrong on purpose
        with pytest.raises(ValueError, match="timeout_ms"):
            client.score_or_fallback("shoe", ADS, lambda *_: 0.5, timeout_ms=0)
    assert service.requests == []


@pytest.mark.parametrize(
    "base_url", ["", "adrel:8000", "/v1", "ftp://adrel", "http://", "http://a:b"]
)
def test_a_base_url_that_cannot_work_is_refused(base_url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        AdrelClient(base_url, timeout_ms=50)


def test_numbers_that_cannot_work_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match="timeout_ms"):
        AdrelClient("http://adrel.test", timeout_ms=0)
    with pytest.raises(ValueError, match="network_margin_ms"):
        AdrelClient("http://adrel.test", timeout_ms=5, network_margin_ms=-1)
