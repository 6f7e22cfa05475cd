from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from service.client import (
    AdStatus,
    AsyncAdrelClient,
    ConnectionFailed,
    DeadlineExceeded,
    Overloaded,
    RequestRefused,
    RetryPolicy,
)
from service.client.connections import MAX_IN_FLIGHT
from tests.service.client.stand_ins import (
    ADS,
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
    script: list[httpx.Response], timeout_ms: float
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
        "http://adrel.test", timeout_ms=timeout_ms, transport=transport
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
    client, requests = hanging_client([], timeout_ms=50)
    async with client:
        results = await asyncio.gather(
            *(client.score_or_fallback("shoe", ADS, lambda *_: 0.5) for _ in range(200))
        )
    # A few more than at once, in the turns of those whose time was over first.
    assert MAX_IN_FLIGHT <= len(requests) < 100
    assert all(ad.status == AdStatus.FALLBACK for result in results for ad in result.scores)


async def test_a_turn_comes_back_when_a_call_ends() -> None:
    client, requests = hanging_client([], timeout_ms=5)
    async with client:
        for _ in range(MAX_IN_FLIGHT + 1):
            await client.score_or_fallback("shoe", ADS, lambda *_: 0.5)
    assert len(requests) == MAX_IN_FLIGHT + 1


def test_a_client_that_may_send_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_in_flight"):
        AsyncAdrelClient("http://adrel.test", timeout_ms=50, max_in_flight=0)
