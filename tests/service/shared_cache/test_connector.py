from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from service.shared_cache.address import RedisAddress
from service.shared_cache.commands import NotUsable
from service.shared_cache.connection import RedisConnection  # skips without it
from service.shared_cache.connector import RedisConnector  # likewise
from tests.fakes import until
from tests.service.shared_cache.peer import Peer

pytestmark = pytest.mark.anyio


async def connect(
    address: RedisAddress, password: str | None = None, timeout_s: float = 30.0
) -> RedisConnection:
    return await RedisConnector(address, password, timeout_s).connect(lambda _: None)


@pytest.mark.parametrize(
    ("user", "database", "password", "greeting"),
    [
        ("", 0, None, b""),
        ("", 0, "pw", b"*2\r\n$4\r\nAUTH\r\n$2\r\npw\r\n"),
        ("ads", 0, "pw", b"*3\r\n$4\r\nAUTH\r\n$3\r\nads\r\n$2\r\npw\r\n"),
        ("", 3, None, b"*2\r\n$6\r\nSELECT\r\n$1\r\n3\r\n"),
    ],
)
async def test_a_connection_is_logged_in_before_it_is_used(
    tmp_path: Path, user: str, database: int, password: str | None, greeting: bytes
) -> None:
    peer, path = Peer(b"+OK\r\n"), tmp_path / "s"
    async with peer.listening(path):
        address = RedisAddress(path=str(path), user=user, database=database)
        connection = await connect(address, password)
        await until(lambda: peer.connected)
        assert peer.received == greeting
        connection.abort("the test ends")


async def test_a_log_in_that_is_refused_says_how_without_what_was_sent(tmp_path: Path) -> None:
    peer, path = Peer(b"-WRONGPASS of hunter2\r\n"), tmp_path / "s"
    async with peer.listening(path):
        with pytest.raises(NotUsable, match=r"redis answered WRONGPASS$"):
            await connect(RedisAddress(path=str(path)), "hunter2")
        await until(lambda: not peer.connected)


async def test_a_peer_that_hangs_is_given_up_in_time(tmp_path: Path) -> None:
    peer, path = Peer(b""), tmp_path / "s"
    async with peer.listening(path):
        with pytest.raises(NotUsable, match="cannot connect to redis: TimeoutError"):
            await connect(RedisAddress(path=str(path)), "pw", timeout_s=0.01)
        await until(lambda: not peer.connected)


@pytest.mark.parametrize(
    "address",
    [RedisAddress(path="/no/such/socket"), RedisAddress("127.0.0.1", 1), RedisAddress("a" * 64)],
)
async def test_an_address_where_nobody_listens_is_not_usable(address: RedisAddress) -> None:
    with pytest.raises(NotUsable, match="cannot connect to redis: "):
        await connect(address)


async def test_a_peer_without_tls_is_not_talked_to_without_it() -> None:
    received = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.extend(await reader.read(2**16))
        writer.write(b"+OK\r\n")
        await reader.read()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(NotUsable, match="cannot connect to redis: "):
            await connect(RedisAddress("127.0.0.1", port, tls=True), "hunter2")
    assert b"hunter2" not in received


def test_over_tls_the_certificate_is_checked() -> None:
    context = RedisConnector(RedisAddress("cache", tls=True), None)._tls
    assert context is not None
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
