from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, cast, get_args

import pytest
import uvicorn
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.server import ServerState

from service.connections import (
    MAX_HEAD_BYTES,
    MAX_PIPELINED,
    SLICE_BYTES,
    ConnectionLimits,
    CutReason,
    GuardedProtocol,
    guarded,
)
from service.metrics.connection_metrics import CUT_REASONS
from tests.fakes import FakeClock, FakeTimer

IDLE_S, OWED_S, BODY_S = 75, 10, 20
GET = b"GET /livez HTTP/1.1\r\nHost: adrel\r\n\r\n"
POST_HEAD = b"POST /v1/score HTTP/1.1\r\nHost: adrel\r\nContent-Length: 100\r\n\r\n"


@dataclass
class FakeTransport:
    """A socket that keeps what is written, or lets it lie unread."""

    written: bytes = b""
    unread_bytes: int = 0
    closing: bool = False
    aborted: bool = False

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True

    def is_closing(self) -> bool:
        return self.closing

    def get_write_buffer_size(self) -> int:
        return self.unread_bytes

    def get_extra_info(self, _: str) -> None:
        return None

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


@dataclass
class FakeLoop:
    """Runs what is asked for when told to."""

    clock: FakeClock
    tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> FakeTimer:
        return self.clock.call_at(self.clock.now_s() + delay_s, callback)

    def create_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(coroutine)
        self.tasks.append(task)
        return task


class Connection:
    """A protocol between a fake socket and an application that answers when it may."""

    def __init__(self, max_connections: int = 10, n_others: int = 0) -> None:
        self.clock, self.transport = FakeClock(), FakeTransport()
        self.loop, self.cut, self.may_answer = FakeLoop(self.clock), list[str](), asyncio.Event()
        self.may_answer.set()
        state = ServerState()
        state.connections = {cast(Any, object()) for _ in range(n_others)}

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            await self.may_answer.wait()
            await Response("live")(scope, receive, send)

        self.late: list[str] = []
        limits = ConnectionLimits(
            max_connections,
            BODY_S,
            self.cut.append,
            lambda scope: self.late.append(scope["path"]),
            OWED_S,
        )
        protocol = guarded(limits)
        config = uvicorn.Config(
            app, http=protocol, ws="none", log_config=None, timeout_keep_alive=IDLE_S
        )
        self.protocol: GuardedProtocol = protocol(config, state, {}, cast(Any, self.loop))
        self.protocol.connection_made(cast(Any, self.transport))

    async def send(self, data: bytes) -> None:
        if not self.transport.closing:
            self.protocol.data_received(data)
            await self.settled()

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def end(self) -> None:
        self.transport.closing = True
        self.protocol.connection_lost(None)
        self.may_answer.set()
        await asyncio.gather(*self.loop.tasks)
        assert not [timer for timer in self.clock.timers if not timer.cancelled]

    @property
    def n_answers(self) -> int:
        return self.transport.written.count(b"HTTP/1.1 200 OK")


Connect = Callable[..., Connection]

pytestmark = pytest.mark.anyio


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """Makes connections that end with the test."""
    made: list[Connection] = []

    def make(**options: int) -> Connection:
        made.append(Connection(**options))
        return made[-1]

    yield make
    for connection in made:
        await connection.end()


async def test_a_request_is_answered_and_the_connection_kept_for_the_idle_time(
    connect: Connect,
) -> None:
    connection = connect()
    for n_asked in (1, 2, 3):
        await connection.send(GET)
        assert connection.n_answers == n_asked
        connection.clock.advance(IDLE_S - 1)
        assert not connection.transport.closing
    connection.clock.advance(1)
    assert (connection.transport.closing, connection.cut) == (True, [])


async def test_a_connection_that_never_asks_ends_like_an_idle_one(connect: Connect) -> None:
    connection = connect()
    connection.clock.advance(IDLE_S - 1)
    assert not connection.transport.is_closing()
    connection.clock.advance(1)
    assert connection.transport.is_closing()


async def test_line_breaks_between_requests_do_not_stop_the_idle_time_for_good(
    connect: Connect,
) -> None:
    connection = connect()
    await connection.send(GET)
    await connection.send(b"\r\n")
    connection.clock.advance(IDLE_S)
    assert connection.transport.closing


async def test_a_head_in_dribbles_gets_408_when_its_time_is_over(connect: Connect) -> None:
    connection = connect()
    for byte in b"GET /livez HT":
        await connection.send(bytes([byte]))
        connection.clock.advance(OWED_S / 13)
    assert connection.transport.written.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert b'"code":"request_timeout"' in connection.transport.written
    assert (connection.transport.closing, connection.cut) == (True, ["slow"])


async def test_a_head_in_pieces_that_is_whole_in_time_is_a_request(connect: Connect) -> None:
    connection = connect()
    for _ in range(3):
        await connection.send(GET[:9])
        connection.clock.advance(OWED_S - 1)
        await connection.send(GET[9:])
        connection.clock.advance(OWED_S - 1)
    assert (connection.n_answers, connection.cut) == (3, [])


@pytest.mark.parametrize("piece_bytes", [1000, 100_000])
async def test_a_head_over_the_limit_gets_431_at_the_limit(
    connect: Connect, piece_bytes: int
) -> None:
    connection = connect()
    await connection.send(b"GET /livez HTTP/1.1\r\nX-Long: ")
    for _ in range(0, MAX_HEAD_BYTES + piece_bytes, piece_bytes):
        await connection.send(b"a" * piece_bytes)
    assert connection.transport.written.startswith(b"HTTP/1.1 431 Request Header Fields Too Large")
    assert (connection.transport.closing, connection.cut) == (True, ["head_too_large"])
    assert connection.n_answers == 0


def request_with_head_of(n_bytes: int) -> bytes:
    padding = n_bytes - len(GET) - len(b"X-Long: \r\n")
    return GET.replace(b"\r\n\r\n", b"\r\nX-Long: " + b"a" * padding + b"\r\n\r\n")


@pytest.mark.parametrize("before", [b"", GET, POST_HEAD + b"a" * 100], ids=["", "GET", "POST"])
@pytest.mark.parametrize("piece_bytes", [1, 999, SLICE_BYTES, 1_000_000])
async def test_the_limit_of_a_head_is_exact_wherever_it_begins_and_however_it_comes(
    connect: Connect, before: bytes, piece_bytes: int
) -> None:
    n_before = 1 if before else 0
    for surplus, n_answers, cut in ((0, 1, []), (1, 0, ["head_too_large"])):
        connection = connect()
        whole = before + request_with_head_of(MAX_HEAD_BYTES + surplus)
        for start in range(0, len(whole), piece_bytes):
            connection.protocol.data_received(whole[start : start + piece_bytes])
        await connection.settled()
        assert connection.cut == cut
        if cut and before:  # still unanswered: all that came at once is ended without a word
            assert connection.transport.aborted
        else:
            assert connection.n_answers == n_before + n_answers


async def test_nothing_behind_a_head_that_is_too_long_is_heard(connect: Connect) -> None:
    connection = connect()
    await connection.send(request_with_head_of(MAX_HEAD_BYTES + 1) + GET)
    assert b"over the limit of 65536 bytes" in connection.transport.written
    assert (connection.n_answers, connection.cut) == (0, ["head_too_large"])


@pytest.mark.parametrize("piece", [b"X: a\r\n", b"a" * 100], ids=["many", "long"])
async def test_fields_behind_a_body_have_the_limit_of_a_head(
    connect: Connect, piece: bytes
) -> None:
    connection = connect()
    chunked = POST_HEAD.replace(b"Content-Length: 100", b"Transfer-Encoding: chunked")
    await connection.send(chunked + b"1\r\na\r\n" * 50_000)
    assert connection.cut == []
    await connection.send(b"0\r\nX-First: ")
    for _ in range(0, MAX_HEAD_BYTES + 2 * SLICE_BYTES, len(piece)):
        if not connection.transport.closing:
            connection.protocol.data_received(piece)
    assert (connection.transport.aborted, connection.cut) == (True, ["head_too_large"])


async def test_a_body_as_large_as_you_like_is_no_head(connect: Connect) -> None:
    connection = connect()
    await connection.send(POST_HEAD.replace(b"100", b"1000000") + b"a" * 1_000_000 + GET)
    assert (connection.n_answers, connection.cut) == (2, [])


async def test_the_rest_of_a_body_that_was_answered_early_must_come_in_time(
    connect: Connect,
) -> None:
    connection = connect()
    await connection.send(POST_HEAD)
    assert connection.n_answers == 1
    for _ in range(10):
        await connection.send(b"a")
        connection.clock.advance(BODY_S / 10)
    assert (connection.transport.aborted, connection.cut, connection.late) == (True, ["slow"], [])


async def test_the_connection_lives_on_where_the_rest_of_the_body_comes(connect: Connect) -> None:
    connection = connect()
    await connection.send(POST_HEAD)
    connection.clock.advance(BODY_S - 1)
    await connection.send(b"a" * 100)
    connection.clock.advance(IDLE_S - 1)
    assert not connection.transport.closing
    await connection.send(GET)
    assert connection.n_answers == 2


async def test_the_time_of_a_head_does_not_begin_with_the_rest_of_the_body_before_it(
    connect: Connect,
) -> None:
    connection = connect()
    await connection.send(POST_HEAD)
    connection.clock.advance(BODY_S - 1)
    await connection.send(b"a" * 100 + GET[:9])
    connection.clock.advance(OWED_S - 1)
    assert not connection.transport.closing
    await connection.send(GET[9:])
    assert (connection.n_answers, connection.cut) == (2, [])


async def test_who_waits_for_a_body_is_woken_when_its_time_is_over(connect: Connect) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(POST_HEAD[:9])
    connection.clock.advance(OWED_S - 1)
    await connection.send(POST_HEAD[9:])
    for _ in range(9):
        await connection.send(b"a")
        connection.clock.advance(BODY_S / 10)
    assert connection.late == []
    connection.clock.advance(BODY_S / 10)
    assert connection.late == ["/v1/score"]
    assert connection.protocol.cycle.message_event.is_set()
    assert (connection.transport.closing, connection.cut) == (False, [])


async def test_a_body_in_line_behind_another_request_is_not_late(connect: Connect) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(GET + POST_HEAD)
    connection.clock.advance(BODY_S)
    assert (connection.late, connection.transport.closing) == ([], False)


async def test_a_whole_request_has_all_the_time_that_its_answer_takes(connect: Connect) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(POST_HEAD)
    await connection.send(b"a" * 100)
    connection.clock.advance(1000)
    assert (connection.late, connection.transport.closing) == ([], False)


async def test_an_answer_that_nobody_reads_is_given_up(connect: Connect) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(GET)
    connection.protocol.pause_writing()  # an earlier answer fills the buffers
    connection.clock.advance(OWED_S)
    assert (connection.transport.aborted, connection.cut) == (True, ["slow"])


async def test_a_reader_that_goes_on_in_time_is_left_alone(connect: Connect) -> None:
    connection = connect()
    for _ in range(3):
        connection.protocol.pause_writing()
        connection.clock.advance(OWED_S - 1)
        connection.protocol.resume_writing()
    assert not connection.transport.closing


@pytest.mark.parametrize("asks_to_close", [True, False])
async def test_a_last_answer_that_is_never_taken_does_not_keep_the_connection(
    connect: Connect, asks_to_close: bool
) -> None:
    connection = connect()
    connection.transport.unread_bytes = 100
    await connection.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
                          if asks_to_close else GET)  # fmt: skip
    if not asks_to_close:
        connection.clock.advance(IDLE_S)
    assert (connection.transport.closing, connection.transport.aborted) == (True, False)
    connection.clock.advance(OWED_S)
    assert (connection.transport.aborted, connection.cut) == (True, ["slow"])


async def test_a_connection_too_many_is_turned_away_with_503(connect: Connect) -> None:
    connection = connect(max_connections=3, n_others=3)
    assert connection.transport.written.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b'"code":"too_many_connections"' in connection.transport.written
    assert (connection.transport.closing, connection.cut) == (True, ["limit"])
    assert not connect(max_connections=3, n_others=2).transport.closing


async def test_requests_in_line_are_answered_in_turn_up_to_a_limit(connect: Connect) -> None:
    connection = connect()
    await connection.send(GET * (MAX_PIPELINED + 1))
    assert (connection.n_answers, connection.cut) == (MAX_PIPELINED + 1, [])
    greedy = connect()
    await greedy.send(GET * 3000)
    assert (greedy.transport.aborted, greedy.cut) == (True, ["pipelined"])


async def test_a_head_behind_a_request_that_is_being_answered_has_time_until_then(
    connect: Connect,
) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(GET + GET[:9])
    connection.clock.advance(3 * OWED_S)
    assert not connection.transport.closing
    connection.may_answer.set()
    await connection.settled()
    connection.clock.advance(OWED_S)
    assert connection.cut == ["slow"]
    assert connection.n_answers == 1


async def test_what_is_no_http_gets_400_once_and_is_counted(connect: Connect) -> None:
    connection = connect()
    await connection.send(b"junk\r\n\r\n" * 5000)
    assert connection.transport.written.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert connection.transport.written.count(b'"code":"malformed_request"') == 1
    assert (connection.transport.closing, connection.cut) == (True, ["malformed"])


async def test_what_is_no_http_behind_a_request_is_not_taken_for_its_answer(
    connect: Connect,
) -> None:
    connection = connect()
    connection.may_answer.clear()
    await connection.send(GET)
    await connection.send(b"junk\r\n\r\n")
    assert (connection.transport.written, connection.transport.aborted) == (b"", True)
    assert connection.cut == ["malformed"]


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c"])
async def test_an_offer_of_another_protocol_is_passed_over_without_a_line(
    connect: Connect, protocol: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    connection = connect()
    offer = b"\r\nConnection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n"
    await connection.send(GET.replace(b"\r\n\r\n", offer))
    assert (connection.n_answers, connection.cut) == (1, [])
    assert not caplog.records


async def test_the_metrics_count_every_reason() -> None:
    assert set(get_args(CutReason)) == set(CUT_REASONS)
