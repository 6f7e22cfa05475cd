"""Over a real socket, with a server that says what the test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from service.shared_cache.commands import Answer, Refusal
from service.shared_cache.connection import RedisConnection
from tests.fakes import until
from tests.service.shared_cache.peer import Peer

pytestmark = pytest.mark.anyio

PING = [(b"PING",)]


class Line:
    """A connection, its peer, and what came of it."""

    def __init__(self, connection: RedisConnection, peer: Peer, ends: list[str]) -> None:
        self.connection, self.peer, self.ends = connection, peer, ends
        self.answers: list[list[Answer] | None] = []

    def ask(self, number: int = 1) -> None:
        for _ in range(number):
            self.connection.send(PING, self.answers.append)


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Line]:
    peer, ends, path = Peer(), list[str](), tmp_path / "s"
    async with peer.listening(path):
        _, connection = await asyncio.get_running_loop().create_unix_connection(
            lambda: RedisConnection(ends.append), str(path)
        )
        await until(lambda: peer.connected)
        yield Line(connection, peer, ends)
        connection.abort("the test ends")


async def test_commands_go_out_packed_and_in_one_piece(line: Line) -> None:
    line.connection.send([(b"SET", b"\r\n", b"\x00"), (b"PING",)], line.answers.append)
    await until(lambda: line.peer.received.endswith(b"PING\r\n"))
    assert line.peer.received == (
        b"*3\r\n$3\r\nSET\r\n$2\r\n\r\n\r\n$1\r\n\x00\r\n*1\r\n$4\r\nPING\r\n"
    )


async def test_answers_reach_their_questions_in_turn_however_they_are_cut(line: Line) -> None:
    line.ask()
    line.connection.send([(b"GET", b"a"), (b"GET", b"b")], line.answers.append)
    line.ask()
    for byte in b"+PONG\r\n$2\r\n\r\n\r\n$-1\r\n*2\r\n:1\r\n$0\r\n\r\n":
        line.peer.say(bytes((byte,)))
    await until(lambda: len(line.answers) == 3)
    assert line.answers == [[b"PONG"], [b"\r\n", None], [[b"1", b""]]]


async def test_an_error_is_a_refusal_of_which_no_more_than_its_first_word_is_kept(
    line: Line,
) -> None:
    line.ask(2)
    line.peer.say(b"-ERR unknown command 'AUTH', with args: 'hunter2'\r\n-hunter2! \r\n")
    await until(lambda: len(line.answers) == 2)
    for answers, told in zip(line.answers, ("ERR", "an error"), strict=True):
        assert answers is not None
        assert isinstance(answers[0], Refusal)
        assert str(answers[0]) == f"redis answered {told}"


async def test_an_answer_that_nobody_waits_for_any_more_is_not_the_next_ones(line: Line) -> None:
    line.connection.send(PING, lambda _: None)  # who asked has left
    line.ask()
    line.peer.say(b"+OLD\r\n+NEW\r\n")
    await until(lambda: bool(line.answers))
    assert line.answers == [[b"NEW"]]
    assert line.ends == []


async def test_all_questions_end_when_the_peer_closes(line: Line) -> None:
    line.ask(2)
    await until(lambda: line.peer.received.count(b"PING") == 2)
    line.peer.say(b"*2\r\n:1\r\n")
    line.peer.close()
    await until(lambda: bool(line.ends))
    assert line.answers == [None, None]
    assert line.ends == ["redis closed the connection"]
    line.ask()
    assert line.answers == [None, None, None]


async def test_what_is_aborted_ends_at_once_and_once(line: Line) -> None:
    line.ask()
    line.connection.abort("too late")
    line.connection.abort("again")
    assert line.answers == [None]
    assert line.ends == ["too late"]


async def test_an_answer_that_nobody_asked_for_ends_the_connection(line: Line) -> None:
    line.ask()
    line.peer.say(b"+PONG\r\n+PONG\r\n+PONG\r\n")
    await until(lambda: bool(line.ends))
    assert line.answers == [[b"PONG"]]
    assert line.ends == ["an answer came that nobody asked for"]


async def test_what_is_not_the_protocol_ends_the_connection_and_all_questions(line: Line) -> None:
    line.ask(3)
    line.peer.say(b"+PONG\r\nHTTP/1.1 400 Bad Request\r\n\r\n")
    await until(lambda: bool(line.ends))
    assert line.ends == ["what came is not redis' protocol"]
    assert line.answers == [[b"PONG"], None, None]
