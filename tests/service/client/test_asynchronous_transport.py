"""The asynchronous client over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpcore
import pytest

from service.client import AsyncAdrelClient, DeadlineExceeded, KeepAliveTransport
from service.client.connections import KeptConnections
from tests.service.client.answering_server import AnsweringServer, answering_server
from tests.service.client.stand_ins import ADS

pytestmark = pytest.mark.anyio
AMPLE_MS = 30_000


@pytest.fixture
def server() -> Iterator[AnsweringServer]:
    with answering_server() as started:
        yield started


async def test_a_connection_is_kept_for_the_next_call(server: AnsweringServer) -> None:
    async with AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS) as client:
        for _ in range(5):
            assert (await client.score("shoe", ADS)).complete
    assert len(server.ports) == 5
    assert len(set(server.ports)) == 1
    await asyncio.to_thread(server.wait_until_closed, 1)


async def test_calls_at_once_have_a_connection_each_and_no_more_than_they_may(
    server: AnsweringServer,
) -> None:
    async with AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS, max_in_flight=3) as client:
        await asyncio.gather(*(client.score("shoe", ADS) for _ in range(30)))
    assert len(server.ports) == 30
    assert len(set(server.ports)) == 3


async def test_a_connection_that_was_closed_while_idle_costs_no_attempt(
    server: AnsweringServer,
) -> None:
    server.hang_up_after = 1
    async with AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS) as client:
        for n_calls in (1, 2, 3):
            assert (await client.score("shoe", ADS)).attempts == 1
            await asyncio.to_thread(server.wait_until_closed, n_calls)
    assert len(set(server.ports)) == 3


async def test_a_connection_that_closes_as_the_request_arrives_is_replaced(
    server: AnsweringServer,
) -> None:
    server.dropped = (1,)
    async with AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS) as client:
        attempts = [(await client.score("shoe", ADS)).attempts for _ in range(3)]
    assert attempts == [1, 2, 1]
    assert len(set(server.ports)) == 2


@pytest.fixture
async def silent() -> AsyncIterator[tuple[str, asyncio.Queue[bytes], asyncio.Event]]:
    """A server that reads and never answers: its URL, what came, and whether it was left."""
    came: asyncio.Queue[bytes] = asyncio.Queue()
    left = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while piece := await reader.read(65_536):
            came.put_nowait(piece)
        left.set()
        writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listener:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", came, left


async def test_a_cancelled_call_closes_its_connection(
    silent: tuple[str, asyncio.Queue[bytes], asyncio.Event],
) -> None:
    url, came, left = silent
    async with AsyncAdrelClient(url, timeout_ms=AMPLE_MS) as client:
        call = asyncio.ensure_future(client.score("shoe", ADS))
        await asyncio.wait_for(came.get(), 30)
        assert not left.is_set()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await asyncio.wait_for(left.wait(), 30)


async def test_a_call_that_is_over_closes_its_connection(
    silent: tuple[str, asyncio.Queue[bytes], asyncio.Event],
) -> None:
    url, _, left = silent
    async with AsyncAdrelClient(url, timeout_ms=20) as client:
        with pytest.raises(DeadlineExceeded):
            await client.score("shoe", ADS)
        await asyncio.wait_for(left.wait(), 30)


class Kept:
    """A connection of which it is only asked whether it can be used; closing it takes for ever."""

    def __init__(self) -> None:
        self.expired = False
        self.closing = asyncio.Event()

    def is_available(self) -> bool:
        return True

    def has_expired(self) -> bool:
        return self.expired

    async def aclose(self) -> None:
        self.closing.set()
        await asyncio.Event().wait()


async def test_a_call_that_is_cancelled_before_it_sends_leaves_its_connection_to_the_next() -> None:
    transport, origin = KeepAliveTransport(), httpcore.Origin(b"http", b"adrel.test", 80)
    kept: KeptConnections[Any] = transport._kept
    usable, useless = Kept(), Kept()
    kept.keep(origin, usable)
    kept.keep(origin, useless)
    useless.expired = True
    taking = asyncio.ensure_future(transport._connection(origin))
    await asyncio.wait_for(useless.closing.wait(), 30)
    taking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await taking
    assert kept.take(origin) == (usable, [])


async def test_whenever_a_call_is_cancelled_its_connection_is_kept_or_closed(
    server: AnsweringServer,
) -> None:
    async with AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS) as client:
        for n_turns in range(12):  # of the event loop, before the call is over
            call = asyncio.ensure_future(client.score("shoe", ADS))
            for _ in range(n_turns):
                await asyncio.sleep(0)
            call.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await call
            assert (await client.score("shoe", ADS)).complete
    gc.collect()  # what was left open says so here, as a warning that fails the test


async def test_a_client_that_is_closed_under_a_call_leaves_nothing_open(
    server: AnsweringServer,
) -> None:
    client = AsyncAdrelClient(server.url, timeout_ms=AMPLE_MS)
    call = asyncio.ensure_future(client.score("shoe", ADS))
    await asyncio.sleep(0)  # it has begun
    await client.aclose()
    assert (await call).complete
    await asyncio.to_thread(server.wait_until_closed, 1)
