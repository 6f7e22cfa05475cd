from __future__ import annotations

from dataclasses import dataclass

import httpcore
import httpx
import pytest

from service.client.connections import KeptConnections, as_httpx_errors

HERE = httpcore.Origin(b"http", b"adrel.test", 80)


@dataclass(eq=False)
class FakeConnection:
    name: str
    available: bool = True
    expired: bool = False

    def is_available(self) -> bool:
        return self.available

    def is_idle(self) -> bool:
        return self.available

    def has_expired(self) -> bool:
        return self.expired


def kept(*connections: FakeConnection) -> KeptConnections[FakeConnection]:
    held: KeptConnections[FakeConnection] = KeptConnections()
    for connection in connections:
        assert held.keep(HERE, connection)
    return held


def test_the_connection_that_was_used_last_is_used_next() -> None:
    a, b = FakeConnection("a"), FakeConnection("b")
    held = kept(a, b)
    assert held.take(HERE) == (b, [])
    assert held.take(HERE) == (a, [])
    assert held.take(HERE) == (None, [])


def test_connections_that_were_closed_meanwhile_are_for_the_caller_to_close() -> None:
    a, b, c = (FakeConnection(name) for name in "abc")
    held = kept(a, b, c)
    b.expired = c.expired = True
    assert held.take(HERE) == (a, [c, b])


def test_one_that_has_waited_too_long_is_found_although_it_is_not_needed() -> None:
    a, b, c = (FakeConnection(name) for name in "abc")
    held = kept(a, b, c)
    a.expired = True
    assert held.take(HERE) == (c, [a])
    assert held.take(HERE) == (b, [])


def test_a_connection_that_is_closed_or_busy_or_has_something_to_read_is_not_kept() -> None:
    held = kept()
    assert not held.keep(HERE, FakeConnection("a", available=False))
    assert not held.keep(HERE, FakeConnection("b", expired=True))
    assert held.take(HERE) == (None, [])


def test_a_connection_leads_to_one_place_only() -> None:
    a = FakeConnection("a")
    held = kept(a)
    for elsewhere in (
        httpcore.Origin(b"https", b"adrel.test", 80),
        httpcore.Origin(b"http", b"adrel.test", 81),
        httpcore.Origin(b"http", b"other.test", 80),
    ):
        assert held.take(elsewhere) == (None, [])
    assert held.take(httpcore.Origin(b"http", b"adrel.test", 80)) == (a, [])


def test_after_the_end_all_are_for_the_caller_to_close() -> None:
    a, b = FakeConnection("a"), FakeConnection("b")
    held = kept(a)
    assert held.end() == [a]
    assert not held.keep(HERE, b)
    assert held.take(HERE) == (None, [])


@pytest.mark.parametrize(
    "name",
    ["ConnectError", "ConnectTimeout", "LocalProtocolError", "PoolTimeout", "ReadError",
     "ReadTimeout", "RemoteProtocolError", "WriteError", "WriteTimeout"],
)  # fmt: skip
def test_every_error_of_httpcore_is_named_as_httpx_names_it(name: str) -> None:
    request = httpx.Request("POST", "http://adrel.test")
    with pytest.raises(getattr(httpx, name), match="why") as caught, as_httpx_errors(request):
        raise getattr(httpcore, name)("why")
    assert caught.value.request is request
