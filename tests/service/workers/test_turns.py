from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from service.workers.turns import (
    ABSENT,
    ConnectionCounts,
    TurnTakingListener,
    shared_counts,
)

pytestmark = pytest.mark.anyio
DEADLINE_S = 30


def counts(*n_open: int) -> ConnectionCounts:
    file = shared_counts(len(n_open))
    made = ConnectionCounts(file, len(n_open))
    os.close(file)
    for slot, number in enumerate(n_open):
        made.set(slot, number)
    return made


async def test_who_has_the_fewest_connections_leaves_them_to_nobody() -> None:
    told = counts(3, 2, 2)
    assert told.others_first(0, 0)
    assert not told.others_first(1, 0)
    assert told.others_first(1, 1)


async def test_a_worker_that_is_not_there_is_left_nothing() -> None:
    assert not counts(3, ABSENT).others_first(0, 0)


async def test_all_who_map_the_memory_see_the_same_and_begin_absent() -> None:
    file = shared_counts(2)
    one, other = ConnectionCounts(file, 2), ConnectionCounts(file, 2)
    os.close(file)
    one.set(0, 1)
    assert not other.others_first(0, 0)
    one.set(1, 0)
    assert other.others_first(0, 0)


class Connections(asyncio.Protocol):
    """Counts what was connected."""

    def __init__(self, made: list[asyncio.BaseTransport]) -> None:
        self._made = made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._made.append(transport)


@asynccontextmanager
async def listening(
    others_first: Callable[[int], bool],
) -> AsyncIterator[tuple[TurnTakingListener, tuple[str, int], list[asyncio.BaseTransport]]]:
    bound = socket.create_server(("127.0.0.1", 0))
    made: list[asyncio.BaseTransport] = []
    listener = TurnTakingListener(bound, others_first, lambda: Connections(made))
    listener.start()
    try:
        yield listener, bound.getsockname(), made
    finally:
        await listener.close()
        for transport in made:
            transport.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not holds():  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(0.001)


async def test_a_worker_whose_turn_it_is_takes_all_that_come() -> None:
    async with listening(lambda _: False) as (_, address, made):
        peers = [socket.create_connection(address) for _ in range(5)]
        await until(lambda: len(made) == 5)
        for peer in peers:
            peer.close()


async def test_one_whose_turn_it_is_not_takes_what_the_others_leave() -> None:
    asked: list[int] = []

    def others_first(n_new: int) -> bool:
        asked.append(n_new)
        return True

    async with listening(others_first) as (_, address, made):
        with socket.create_connection(address), socket.create_connection(address):
            await until(lambda: len(made) == 2)
        assert asked


async def test_two_that_share_a_socket_get_half_each_of_what_comes_at_once() -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    told = counts(0, 0)
    made: list[list[asyncio.BaseTransport]] = [[], []]

    def listener(slot: int) -> TurnTakingListener:
        class Counted(Connections):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                super().connection_made(transport)
                told.set(slot, len(made[slot]))

        return TurnTakingListener(
            bound.dup(), lambda n_new: told.others_first(slot, n_new), lambda: Counted(made[slot])
        )

    peers = [socket.create_connection(bound.getsockname()) for _ in range(16)]
    both = [listener(slot) for slot in range(2)]
    for one in both:
        one.start()
    await until(lambda: len(made[0]) + len(made[1]) == 16)
    assert {len(one) for one in made} == {8}
    for one in both:
        await one.close()
    for transport in made[0] + made[1]:
        transport.close()
    for peer in peers:
        peer.close()
    bound.close()


async def test_a_closed_one_leaves_what_waits_to_others() -> None:
    bound = socket.create_server(("127.0.0.1", 0))
    made: list[asyncio.BaseTransport] = []
    listener = TurnTakingListener(bound.dup(), lambda _: False, lambda: Connections(made))
    listener.start()
    await listener.close()
    with bound, socket.create_connection(bound.getsockname()):
        other, _ = bound.accept()
        other.close()
    assert made == []


async def test_without_room_for_another_file_it_waits_and_does_not_spin(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries = 0

    def full(_: socket.socket) -> tuple[socket.socket, object]:
        nonlocal tries
        tries += 1
        raise OSError(errno.EMFILE, "Too many open files")

    async with listening(lambda _: False) as (_, address, _made):
        monkeypatch.setattr(socket.socket, "accept", full)
        with socket.create_connection(address):
            await until(lambda: tries > 0)
            for _ in range(50):
                await asyncio.sleep(0)
            assert tries == 1
