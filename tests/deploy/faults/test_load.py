"""The load against servers that do wrong by its requests, each in one way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import cast

import pytest

from deploy.faults import load as load_module
from deploy.faults.load import N_ADS, Load
from deploy.faults.outcomes import Outcome

pytestmark = pytest.mark.anyio

TEXTS = [f"text {number}" for number in range(N_ADS)]
MODELS = {"v1": {("red", text): 0.5 for text in TEXTS}}
Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


def right(body: bytes) -> bytes:
    asked = json.loads(body)
    scores = [{"id": ad["id"], "score": 0.5, "status": "ok"} for ad in asked["ads"]]
    answer = json.dumps(
        {"request_id": asked["request_id"], "model": {"version": "v1"}, "scores": scores}
    ).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(answer) + answer


async def soundly(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(right(body))


async def twice(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(right(body) * 2)


async def half(body: bytes, writer: asyncio.StreamWriter) -> None:
    writer.write(right(body)[:-10])
    writer.close()


async def never(_: bytes, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def silently(_: bytes, writer: asyncio.StreamWriter) -> None:
    """Keep the connection and say nothing."""


async def played(answer: Answer, n_requests: int = 5) -> Load:
    """So many requests to a server that answers so."""
    enough = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.partition(b"Content-Length: ")[2])
                await answer(await reader.readexactly(length), writer)
                if load.sent >= n_requests:
                    enough.set()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    load = Load(server.sockets[0].getsockname()[:2], [("red", TEXTS)], MODELS, timeout_ms=50)
    async with server, asyncio.timeout(30):
        await load.run(500.0, enough)
    return load


async def test_every_request_to_a_sound_server_ends_well_over_few_connections() -> None:
    load = await played(soundly, 20)
    assert load.sent == len(load.ended) >= 20
    assert {one.outcome for one in load.ended} == {Outcome.OK}
    assert load.surplus == 0


async def test_an_answer_that_comes_twice_is_seen() -> None:
    load = await played(twice)
    assert load.surplus or any(one.outcome is Outcome.WRONG for one in load.ended)
    assert len(load.ended) == load.sent


async def test_bytes_that_nobody_asked_for_are_seen_at_the_end() -> None:
    class Writer:
        def close(self) -> None:
            pass

    load, stopped = Load(("127.0.0.1", 1), [("red", TEXTS)], MODELS, timeout_ms=50), asyncio.Event()
    for surplus in (b"", b"HTTP/1.1 200 OK"):
        reader = asyncio.StreamReader()
        reader.feed_data(surplus)
        load._kept.append((reader, cast("asyncio.StreamWriter", Writer())))
    stopped.set()
    await load.run(1.0, stopped)
    assert (load.sent, load.surplus) == (0, 1)


@pytest.mark.parametrize("answer", [half, never])
async def test_a_connection_that_ends_before_the_answer_does_is_a_reset(answer: Answer) -> None:
    load = await played(answer)
    assert len(load.ended) == load.sent
    assert {one.outcome for one in load.ended} == {Outcome.RESET}


async def test_a_server_that_says_nothing_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(load_module, "SILENCE_AFTER_S", 0.05)
    load = await played(silently)
    assert len(load.ended) == load.sent
    assert {one.outcome for one in load.ended} == {Outcome.SILENCE}


async def test_where_nobody_listens_requests_are_refused() -> None:
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()[:2]
    load, stopped = Load(address, [("red", TEXTS)], MODELS, timeout_ms=50), asyncio.Event()
    running = asyncio.create_task(load.run(500.0, stopped))
    async with asyncio.timeout(30):
        while not load.ended:  # noqa: ASYNC110  # as `until` of the fakes
            await asyncio.sleep(0)
    stopped.set()
    await running
    assert {one.outcome for one in load.ended} == {Outcome.REFUSED}
