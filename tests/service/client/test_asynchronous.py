from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from service.client import (
    AdStatus,
    AsyncAdrelClient,
    BadAnswer,
    ConnectionFailed,
    DeadlineExceeded,
    DeadlineTransport,
    Overloaded,
    RequestRefused,
    RetryPolicy,
    WrongEndpoint,
)
from tests.service.client.stand_ins import (
    ADS,
    BASE_URL,
    FakeService,
    FakeTime,
    async_client,
    overloaded,
    refusal,
)

pytestmark = pytest.mark.anyio


async def test_a_call_returns_what_the_blocking_client_would() -> None:
    service = FakeService()
    async with async_client(service) as client:
        result = await client.score("shoe", ADS, min_score=0.55, priority="batch")
    assert [(ad.id, ad.score, ad.eligible) for ad in result.scores] == [
        ("A", 0.5, False),
        ("B", 0.6, True),
    ]
    assert service.asked[0]["timeout_ms"] == pytest.approx(98)
    assert service.asked[0]["priority"] == "batch"
    assert int(service.requests[0].headers["content-length"]) == len(service.requests[0].content)


async def test_a_retry_waits_as_told_and_gets_what_is_left() -> None:
    fake, service = FakeTime(), FakeService([overloaded(30)])
    async with async_client(service, fake, retry=RetryPolicy(base_ms=4)) as client:
        result = await client.score("shoe", ADS)
    assert fake.waits_s == pytest.approx([0.032])
    assert service.asked[1]["timeout_ms"] == pytest.approx(66)
    assert result.attempts == 2


async def test_a_retry_that_does_not_fit_is_not_made() -> None:
    fake, service = FakeTime(), FakeService([overloaded(96)])
    async with async_client(service, fake) as client:
        with pytest.raises(Overloaded) as caught:
            await client.score("shoe", ADS)
    assert caught.value.retry_after_s == 0.096
    assert (fake.waits_s, len(service.requests)) == ([], 1)


def hanging_client(
    script: list[httpx.Response], timeout_ms: float, max_in_flight: int = 100
) -> tuple[AsyncAdrelClient, list[httpx.Request]]:
    """A client in real time, of a service that after its script never answers."""
    requests: list[httpx.Request] = []

    async def serve(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        if script:
            return script.pop(0)
        await asyncio.Event().wait()
        raise AssertionError("nobody wakes it")

    transport = httpx.MockTransport(serve)
    return AsyncAdrelClient(
        BASE_URL, timeout_ms=timeout_ms, max_in_flight=max_in_flight, transport=transport
    ), requests


async def test_a_service_that_hangs_costs_the_deadline_and_one_request() -> None:
    client, requests = hanging_client([], timeout_ms=20)
    started_s = time.monotonic()
    async with client:
        with pytest.raises(DeadlineExceeded, match="no answer within 20 ms; attempts: 1"):
            await client.score("shoe", ADS)
    assert 0.02 <= time.monotonic() - started_s < 4  # loose: the machine's neighbours have a say
    assert len(requests) == 1


async def test_the_deadline_holds_for_all_attempts_together() -> None:
    client, requests = hanging_client([overloaded(1)], timeout_ms=500)
    async with client:
        with pytest.raises(DeadlineExceeded, match="attempts: 2"):
            await client.score("shoe", ADS)
    assert len(requests) == 2


async def test_a_hanging_service_leaves_an_auction_its_fallback() -> None:
    client, _ = hanging_client([], timeout_ms=5)
    async with client:
        result = await client.score_or_fallback("shoe", ADS, lambda _, ad: {"A": 0.3}.get(ad.id))
    assert [(ad.score, ad.status) for ad in result.scores] == [
        (0.3, AdStatus.FALLBACK),
        (None, AdStatus.DEADLINE),
    ]
    assert result.elapsed_ms >= 5


async def test_a_cancelled_call_is_cancelled_and_is_no_deadline() -> None:
    client, requests = hanging_client([], timeout_ms=60_000)
    async with client:
        call = asyncio.ensure_future(client.score_or_fallback("shoe", ADS, lambda *_: 0.5))
        while not requests:  # noqa: ASYNC110  # the list is the test's, not an event
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_a_wrong_request_is_raised_although_there_is_a_fallback() -> None:
    async with async_client(FakeService([refusal(422, "too_many_ads")])) as client:
        with pytest.raises(RequestRefused):
            await client.score_or_fallback("shoe", ADS, lambda *_: 0.5)


async def test_connections_that_fail_are_tried_so_often_and_no_more() -> None:
    service = FakeService([httpx.ConnectError("refused")] * 5)
    async with async_client(service, retry=RetryPolicy(max_attempts=3)) as client:
        with pytest.raises(ConnectionFailed):
            await client.score("shoe", ADS)
    assert len(service.requests) == 3


async def test_of_many_calls_only_so_many_are_on_the_wire_and_none_waits_past_its_deadline() -> (
    None
):
    client, requests = hanging_client([], timeout_ms=50, max_in_flight=16)
    async with client:
        results = await asyncio.gather(
            *(client.score_or_fallback("shoe", ADS, lambda *_: 0.5) for _ in range(200))
        )
    # A few more than at once, in the turns of those whose time was over first.
    assert 16 <= len(requests) < 100
    assert all(ad.status == AdStatus.FALLBACK for result in results for ad in result.scores)


async def test_a_turn_comes_back_when_a_call_ends() -> None:
    client, requests = hanging_client([], timeout_ms=5, max_in_flight=2)
    async with client:
        for _ in range(3):
            await client.score_or_fallback("shoe", ADS, lambda *_: 0.5)
    assert len(requests) == 3


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"base_url": "http://adrel/?x=1"}, "base_url"),
        ({"timeout_ms": "50"}, "timeout_ms"),
        ({"max_in_flight": 0}, "max_in_flight"),
        ({"max_in_flight": 1.5}, "max_in_flight"),
        ({"transport": DeadlineTransport()}, "transport"),
        ({"sleep": None}, "sleep: takes a function, got None"),
        ({"clock": 1}, "clock: takes a function, got int 1"),
    ],
)
def test_a_client_that_cannot_work_is_refused_by_name(changes: dict[str, Any], name: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{name}"):
        AsyncAdrelClient(**{"base_url": BASE_URL, "timeout_ms": 50, **changes})


async def test_a_wrong_argument_is_named_before_anything_is_sent() -> None:
    service = FakeService()
    async with async_client(service) as client:
        with pytest.raises(TypeError, match="ads: takes a sequence of Ad, got a single one"):
            await client.score("shoe", ADS[0])  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(TypeError, match="fallback: takes a plain function"):
            await client.score_or_fallback("shoe", ADS, 0.5)  # type: ignore[arg-type]  # as above
    assert service.requests == []


async def test_a_wrong_address_leaves_an_auction_its_fallback() -> None:
    service = FakeService([refusal(404, "not_found")] * 2)
    async with async_client(service) as client:
        with pytest.raises(WrongEndpoint):
            await client.score("shoe", ADS)
        result = await client.score_or_fallback("shoe", ADS, lambda *_: 0.5)
    assert isinstance(result.error, WrongEndpoint)
    assert [ad.score for ad in result.scores] == [0.5, 0.5]


async def test_of_an_endless_answer_no_more_is_read_than_an_answer_can_have() -> None:
    taken_bytes = 0

    class Endless(httpx.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            nonlocal taken_bytes
            while taken_bytes < 50_000_000:
                taken_bytes += 10_000
                yield b" " * 10_000

    async with async_client(FakeService([httpx.Response(200, stream=Endless())])) as client:
        with pytest.raises(BadAnswer, match="bytes"):
            await client.score("shoe", ADS)
    assert taken_bytes < 100_000


async def test_a_closed_client_sends_nothing() -> None:
    service = FakeService()
    client = async_client(service)
    await client.aclose()
    with pytest.raises(RuntimeError, match="this client is closed"):
        await client.score("shoe", ADS)
    assert service.requests == []


def test_a_second_event_loop_is_told_to_make_a_client_of_its_own() -> None:
    service = FakeService()
    client = async_client(service)
    asyncio.run(client.score("shoe", ADS))
    with pytest.raises(RuntimeError, match="make one AsyncAdrelClient for each"):
        asyncio.run(client.score("shoe", ADS))
    assert len(service.requests) == 1
