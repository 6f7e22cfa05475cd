from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from deploy.benchmarks import load_client
from deploy.benchmarks.http_connection import Address
from deploy.benchmarks.load_client import (
    Exchange,
    answered_per_s,
    closed_loop,
    latencies_ms,
    open_loop,
    percentile,
    prepare,
)

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Result = TypeVar("Result")

REQUESTS = [prepare("127.0.0.1", 1, "/x", body) for body in (b"zero", b"one")]


def against(handler: Handler, load: Callable[[Address], Awaitable[Result]]) -> Result:
    """What `load` gives against a server whose connections `handler` takes."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client is done
        finally:
            writer.close()

    async def run() -> Result:
        server = await asyncio.start_server(connected, "127.0.0.1", 0)
        async with server:
            return await load(server.sockets[0].getsockname()[:2])

    return asyncio.run(asyncio.wait_for(run(), timeout=20))


async def read_body(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
    return await reader.readexactly(int(length.split(b":")[1]))


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        body = await read_body(reader)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body))
        await writer.drain()  # head and body come in two pieces
        writer.write(body)


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:  # noqa: ARG001
    await reader.read()


def test_a_prepared_request_is_a_complete_post() -> None:
    request = prepare("localhost", 80, "/v1/score", b"{}", [("X-Request-Id", "a")])
    head, body = request.split(b"\r\n\r\n")
    assert head.split(b"\r\n")[0] == b"POST /v1/score HTTP/1.1"
    assert {b"Host: localhost:80", b"Content-Length: 2", b"X-Request-Id: a"} < {
        *head.split(b"\r\n")
    }
    assert body == b"{}"


def test_closed_loop_callers_get_the_answers_to_their_own_requests() -> None:
    exchanges = against(echo, lambda address: closed_loop(address, REQUESTS, 3, 0.1))
    assert len(exchanges) > 3
    assert {exchange.status for exchange in exchanges} == {200}
    assert {(exchange.index, exchange.body) for exchange in exchanges} == {
        (0, b"zero"),
        (1, b"one"),
    }
    assert all(exchange.answered_s > exchange.sent_s for exchange in exchanges)


def test_a_server_that_hangs_up_is_a_failed_exchange_and_the_caller_goes_on() -> None:
    served = []

    async def hang_up_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(await read_body(reader))
        if len(served) > 1:
            writer.write(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")

    exchanges = against(hang_up_first, lambda address: closed_loop(address, REQUESTS, 1, 0.1))
    assert exchanges[0].status == 0
    assert 503 in {exchange.status for exchange in exchanges}


def test_an_answer_without_a_length_is_a_failed_exchange() -> None:
    async def chunked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_body(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")

    exchanges = against(chunked, lambda address: closed_loop(address, REQUESTS, 1, 0.05))
    assert {exchange.status for exchange in exchanges} == {0}


def test_a_port_where_nobody_listens_gives_failed_exchanges() -> None:
    async def nobody(address: Address) -> list[Exchange]:
        return await closed_loop((address[0], 1), REQUESTS, 1, 0.05)

    assert {exchange.status for exchange in against(echo, nobody)} == {0}


@pytest.mark.parametrize("loop", ["closed", "open"])
def test_an_answer_that_never_comes_is_not_waited_for_long(
    loop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_client, "STRAGGLERS_S", 0.1)
    started_s = time.perf_counter()
    if loop == "closed":
        exchanges = against(never, lambda address: closed_loop(address, REQUESTS, 2, 0.05))
    else:
        exchanges = against(never, lambda address: open_loop(address, REQUESTS, 200, 0.1, 2, 0))
    assert time.perf_counter() - started_s < 5
    assert len(exchanges) >= 2
    assert {exchange.status for exchange in exchanges} == {0}


def test_open_loop_sends_at_the_instants_that_the_seed_decides() -> None:
    def offsets_s(seed: int) -> list[float]:
        exchanges = against(echo, lambda address: open_loop(address, REQUESTS, 500, 0.2, 50, seed))
        assert {exchange.status for exchange in exchanges} == {200}
        sent_s = sorted(exchange.sent_s for exchange in exchanges)
        return [instant_s - sent_s[0] for instant_s in sent_s]

    first = offsets_s(1)
    assert 50 < len(first) < 200
    assert first == pytest.approx(offsets_s(1), abs=1e-6)
    assert first != pytest.approx(offsets_s(2), abs=1e-6)


def test_an_arrival_with_no_free_connection_is_counted_as_failed() -> None:
    async def load(address: Address) -> list[Exchange]:
        return await open_loop(address, REQUESTS, 500, 0.1, 1, 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(load_client, "STRAGGLERS_S", 0.1)
        exchanges = against(never, load)
    at_once = [exchange for exchange in exchanges if exchange.latency_ms < 100]
    assert len(exchanges) > 20
    assert len(at_once) >= len(exchanges) - 1
    assert {exchange.status for exchange in exchanges} == {0}


def test_latency_counts_from_the_instant_when_the_request_was_due() -> None:
    first_arrival_s: list[float] = []

    async def stall_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_body(reader)
        if not first_arrival_s:
            first_arrival_s.append(time.perf_counter())
            while time.perf_counter() - first_arrival_s[0] < 0.1:
                pass  # client and server share the loop: nobody can send meanwhile
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    exchanges = against(stall_once, lambda address: open_loop(address, REQUESTS, 200, 0.1, 99, 0))
    assert sum(exchange.latency_ms > 20 for exchange in exchanges) > 5


def test_percentiles_are_values_that_were_measured() -> None:
    ordered = [float(value) for value in range(1, 101)]
    assert percentile(ordered, 50) == 50
    assert percentile(ordered, 99) == 99
    assert percentile(ordered, 100) == 100
    assert percentile(ordered, 0) == 1
    assert math.isnan(percentile([], 50))


def test_only_answers_with_200_have_a_latency_and_count_as_answered() -> None:
    exchanges = [
        Exchange(0, 10.0, 10.5, 200, b""),
        Exchange(1, 10.0, 10.2, 200, b""),
        Exchange(2, 10.0, 10.1, 503, b""),
        Exchange(3, 10.9, 11.5, 200, b""),  # answered after the run
    ]
    assert latencies_ms(exchanges) == pytest.approx([200, 500, 600])
    assert answered_per_s(exchanges, 1.0) == 2
    assert answered_per_s([], 1.0) == 0
