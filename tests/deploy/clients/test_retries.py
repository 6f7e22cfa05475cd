"""What callers in other languages do not try again, as it would fail again or was answered."""

from __future__ import annotations

import contextlib
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.clients.driver import Caller
from tests.deploy.clients.stand_in_server import Raw, StandIn, refused, scored, standing_in
from tests.deploy.clients.test_calls import ADS, QUERY
from tests.deploy.clients.toolchains import tool

LONG_HEAD = b"HTTP/1.1 200 OK\r\n" + b"X-Filler: %b\r\n" % (b"x" * 1000) * 120


@pytest.mark.parametrize(
    "content",
    [b"\x15\x03\x01 not HTTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le", b"H", LONG_HEAD],
    ids=["garbage", "half a head", "one byte", "a head without end"],
)
@pytest.mark.parametrize("kept", [False, True], ids=["new", "kept"])
def test_the_beginning_of_an_answer_is_not_asked_for_again(
    caller: Caller, content: bytes, kept: bool
) -> None:
    with standing_in(*[scored] * kept, Raw(content)) as server:
        for _ in range(kept):
            assert not caller.call(server.url, QUERY, ADS).raised
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "connection_failed")
    assert len(server.asked) == 1 + kept


def test_a_proxy_that_asks_for_a_password_is_not_asked_again(caller: Caller) -> None:
    with standing_in(refused(407, "proxy_authentication")) as server:
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (filled.raised, filled.http_status) == (False, 407)
    assert len(server.asked) == 1


def test_https_to_a_plain_port_is_tried_once(caller: Caller) -> None:
    with standing_in() as server:
        failed = caller.call(server.url.replace("http:", "https:"), QUERY, ADS)
        filled = caller.call(server.url.replace("http:", "https:"), QUERY, ADS, fallback=True)
    assert (failed.raised, failed.code) == (True, "connection_failed")
    assert (filled.raised, filled.code) == (False, "connection_failed")
    assert server.n_connections == 2


@contextlib.contextmanager
def with_tls(folder: Path) -> Iterator[StandIn]:
    """A server with a certificate that nobody trusts."""
    words = "req -x509 -newkey rsa:2048 -nodes -subj /CN=127.0.0.1 -days 1 -keyout key -out cert"
    subprocess.run([tool("openssl"), *words.split()], cwd=folder, capture_output=True, check=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert", folder / "key")
    with standing_in(tls=context) as server:
        yield server


def test_an_untrusted_certificate_is_met_once(caller: Caller, tmp_path: Path) -> None:
    with with_tls(tmp_path) as server:
        failed = caller.call(server.url, QUERY, ADS)
    assert (failed.raised, failed.code) == (True, "connection_failed")
    assert server.n_connections == 1
    assert server.asked == []
