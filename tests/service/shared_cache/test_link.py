from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from service.shared_cache.breaker import (
    FIRST_PAUSE_S,
    LONGEST_PAUSE_S,
    MAX_FAILED,
    Breaker,
)
from service.shared_cache.commands import Answer, NotUsable, Refusal
from service.shared_cache.link import N_PROBES, Link
from tests.fakes import FakeClock
from tests.service.shared_cache.fake_redis import FakeRedis, pass_time, turns

pytestmark = pytest.mark.anyio

TIMEOUT_S = 0.002


@asynccontextmanager
async def running(redis: FakeRedis, clock: FakeClock) -> AsyncIterator[Link]:
    link = Link(redis.connect, Breaker(lambda: 1.0), clock, TIMEOUT_S)
    task = asyncio.create_task(link.run())
    await pass_time(clock, 0)
    try:
        yield link
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def in_use(link: Link) -> object:
    return link.connection


async def test_a_redis_that_answers_is_in_use_at_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    redis = FakeRedis()
    async with running(redis, FakeClock()) as link:
        assert in_use(link) is redis.connections[0]
        assert link.state == "closed"
    assert redis.connections[0].ended == "the service stops"
    assert [record.levelname for record in caplog.records] == ["INFO"]


async def test_a_redis_that_is_down_is_tried_again_ever_more_rarely(
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis, clock = FakeRedis(), FakeClock()
    redis.refuses = NotUsable("Connection refused")
    async with running(redis, clock) as link:
        for n_attempts in range(1, 6):
            assert redis.n_attempts == n_attempts
            assert link.state == "open"
            assert in_use(link) is None
            pause_s = FIRST_PAUSE_S * 2 ** (n_attempts - 1)
            await pass_time(clock, pause_s - 0.001)
            assert redis.n_attempts == n_attempts
            await pass_time(clock, 0.002)
        redis.refuses = None
        await pass_time(clock, LONGEST_PAUSE_S)
        assert link.state == "closed"
    told = [record for record in caplog.records if record.levelname == "WARNING"]
    assert [record.__dict__["why"] for record in told] == ["Connection refused"], "once"


async def test_a_lost_connection_opens_the_breaker_and_is_made_anew(
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis, clock = FakeRedis(), FakeClock()
    async with running(redis, clock) as link:
        redis.connections[0].abort("redis closed the connection")
        assert in_use(link) is None
        assert link.state == "open"
        await pass_time(clock, FIRST_PAUSE_S)
        assert in_use(link) is redis.connections[1]
    assert "redis closed the connection" in caplog.records[-1].__dict__["why"]


async def test_lookups_of_no_use_end_the_connection() -> None:
    redis, clock = FakeRedis(), FakeClock()
    async with running(redis, clock) as link:
        for _ in range(MAX_FAILED - 1):
            link.failed("redis answers too late")
        assert in_use(link) is redis.connections[0]
        link.failed("redis answers too late")
        assert in_use(link) is None
        assert redis.connections[0].ended == "redis answers too late"
        await pass_time(clock, FIRST_PAUSE_S)
        assert link.state == "closed"


@pytest.mark.parametrize(
    ("answer", "why"),
    [(Refusal("LOADING Redis is loading the dataset in memory"), "redis answered LOADING"),
     (Refusal("CROSSSLOT Keys in request don't hash to the same slot"), "answered CROSSSLOT"),
     (Refusal("NOAUTH Authentication required."), "redis answered NOAUTH"),
     (b"PONG", "something else than was asked")],
)  # fmt: skip
async def test_a_redis_that_refuses_the_probe_is_not_used(
    answer: Answer, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    redis = FakeRedis()
    redis.probe_answers = [answer]
    async with running(redis, FakeClock()) as link:
        assert link.state == "open"
        assert in_use(link) is None
        assert redis.connections[0].ended is not None
    assert why in caplog.records[-1].__dict__["why"]


async def test_a_redis_that_never_answers_the_probe_is_half_open_until_it_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis, clock = FakeRedis(), FakeClock()
    redis.probe_answers = []
    async with running(redis, clock) as link:
        for n_probes in range(1, N_PROBES + 1):
            assert len(redis.connections[0].sent) == n_probes
            assert link.state == "half_open"
            assert in_use(link) is None, "no request pays for an attempt"
            await pass_time(clock, TIMEOUT_S)
        assert link.state == "open"
    assert "does not answer within 2 ms" in caplog.records[-1].__dict__["why"]


async def test_one_probe_in_time_is_enough() -> None:
    redis, clock = FakeRedis(), FakeClock()
    redis.probe_answers = []
    async with running(redis, clock) as link:
        await pass_time(clock, TIMEOUT_S)
        redis.connections[0].answer([None, None])  # of the first, which is too late
        await turns()
        assert link.state == "half_open"
        redis.connections[0].answer([None, None])
        await turns()
        assert link.state == "closed"


async def test_a_connection_that_ends_during_the_probe_is_an_attempt_that_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    redis, clock = FakeRedis(), FakeClock()
    redis.probe_answers = []
    async with running(redis, clock) as link:
        redis.connections[0].abort("redis closed the connection")
        await turns()
        assert link.state == "open"
        await pass_time(clock, FIRST_PAUSE_S)
        assert redis.n_attempts == 2
    assert caplog.records[-1].__dict__["why"] == "redis closed the connection"


async def test_a_connection_that_ends_right_after_the_probe_is_not_used() -> None:
    redis, clock = FakeRedis(), FakeClock()
    redis.probe_answers = []
    async with running(redis, clock) as link:
        redis.connections[0].answer([None, None])
        redis.connections[0].abort("an answer came that nobody asked for")  # in the same piece
        await turns()
        assert in_use(link) is None
        assert link.state == "open"


async def test_a_fault_of_ours_is_logged_and_the_link_lives_on(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis, clock = FakeRedis(), FakeClock()
    monkeypatch.setattr(redis, "refuses", ZeroDivisionError())
    async with running(redis, clock) as link:
        assert link.state == "open"
        monkeypatch.setattr(redis, "refuses", None)
        await pass_time(clock, FIRST_PAUSE_S)
        assert link.state == "closed"
    assert "for a reason of ours" in caplog.text
