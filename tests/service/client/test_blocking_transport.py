"""Sockets whose every operation takes time: the sum is what the deadline bounds."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable
from typing import Any

import httpcore
import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client import AdrelClient, ConnectionFailed, DeadlineExceeded, DeadlineTransport
from service.client.blocking_transport import DeadlineBackend, until
from service.client.deadline import Deadline
from tests.service.client.stand_ins import ADS, FakeTime, answer_to


class SlowStream(httpcore.NetworkStream):
    """Takes some time for each operation and answers piece by piece."""

    def __init__(self, network: SlowNetwork) -> None:
        self._network = network
        self._sent = b""
        self._answer = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._network.spend(self._network.write_s, timeout, httpcore.WriteTimeout)
        self._sent += buffer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if self._sent:
            self._answer, self._sent = self._network.answer(self._sent), b""
        self._network.spend(self._network.read_s, timeout, httpcore.ReadTimeout)
        piece = self._answer[: self._network.piece_bytes]
        self._answer = self._answer[len(piece) :]
        return piece

    def close(self) -> None:
        self._network.closed += 1

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401  # as httpcore has it
        return self._network.hung_up if info == "is_readable" else None


class SlowNetwork(httpcore.NetworkBackend):
    def __init__(
        self, time: FakeTime, connect_s: float = 0, write_s: float = 0, read_s: float = 0
    ) -> None:
        self.time = time
        self.connect_s, self.write_s, self.read_s = connect_s, write_s, read_s
        self.piece_bytes = 100_000
        self.answer: Callable[[bytes], bytes] = answer_over_http
        self.connections: list[str] = []
        self.closed = 0
        self.hung_up = False
        self.refusing: set[str] = set()

    def spend(self, takes_s: float, timeout_s: float | None, late: type[Exception]) -> None:
        assert timeout_s is not None
        assert timeout_s > 0
        self.time.now_s += min(takes_s, timeout_s)
        if takes_s >= timeout_s:
            raise late("late")

    def connect_tcp(
        self,
        host: str,
        port: int,  # noqa: ARG002  # here and below: as httpcore has it
        timeout: float | None = None,
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self.connections.append(host)
        self.spend(self.connect_s, timeout, httpcore.ConnectTimeout)
        if host in self.refusing:
            raise httpcore.ConnectError(f"{host} refused")
        return SlowStream(self)


def answer_over_http(sent: bytes) -> bytes:
    body = json.dumps(answer_to(json.loads(sent.split(b"\r\n\r\n", 1)[1]))).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


def client_on(
    network: SlowNetwork, timeout_ms: float = 100, max_connections: int = 100
) -> AdrelClient:
    return AdrelClient(
        "http://127.0.0.1:1",
        timeout_ms=timeout_ms,
        transport=DeadlineTransport(max_connections=max_connections, backend=network),
        clock=network.time.clock,
        sleep=network.time.sleep,
        random=lambda: 0,
    )


def test_a_connection_is_kept_for_the_next_call() -> None:
    network = SlowNetwork(FakeTime())
    with client_on(network) as client:
        assert client.score("shoe", ADS).complete
        assert client.score("bag", ADS).complete
    assert len(network.connections) == 1
    assert network.closed == 1


def test_the_service_is_told_what_connecting_has_left() -> None:
    told = []

    def answer(sent: bytes) -> bytes:
        told.append(json.loads(sent.split(b"\r\n\r\n", 1)[1])["timeout_ms"])
        return answer_over_http(sent)

    network = SlowNetwork(FakeTime(), connect_s=0.03)
    network.answer = answer
    with client_on(network) as client:
        client.score("shoe", ADS)
        client.score("shoe", ADS)
    assert told == pytest.approx([68, 98])


def test_an_answer_in_dribbles_ends_at_the_deadline() -> None:
    network = SlowNetwork(FakeTime(), read_s=0.01)
    network.piece_bytes = 1
    started_s = network.time.now_s
    with client_on(network) as client, pytest.raises(DeadlineExceeded):
        client.score("shoe", ADS)
    assert network.time.now_s == pytest.approx(started_s + 0.1)


@given(
    connect_s=st.floats(0, 0.15),
    write_s=st.floats(0, 0.05),
    read_s=st.floats(0, 0.15),
    piece_bytes=st.integers(20, 1000),
)
def test_connecting_sending_and_reading_together_never_outlive_the_deadline(
    connect_s: float, write_s: float, read_s: float, piece_bytes: int
) -> None:
    network = SlowNetwork(FakeTime(), connect_s, write_s, read_s)
    network.piece_bytes = piece_bytes
    started_s = network.time.now_s
    with client_on(network) as client:
        result = client.score_or_fallback("shoe", ADS, lambda *_: 0.5)
    assert network.time.now_s <= started_s + 0.1 + 1e-9
    assert result.attempts == 1
    assert result.complete or isinstance(result.error, DeadlineExceeded)


def test_a_large_body_gives_the_deadline_a_say_between_its_pieces() -> None:
    network = SlowNetwork(FakeTime(), write_s=0.04)
    started_s = network.time.now_s
    with client_on(network) as client, pytest.raises(DeadlineExceeded):
        client.score("shoe", ADS * 2000)
    assert network.time.now_s == pytest.approx(started_s + 0.1)


def test_a_kept_connection_that_was_closed_meanwhile_is_replaced() -> None:
    network = SlowNetwork(FakeTime())
    closed_at_the_second = iter([False, True, False])
    network.answer = lambda sent: b"" if next(closed_at_the_second) else answer_over_http(sent)
    with client_on(network) as client:
        assert client.score("shoe", ADS).attempts == 1
        assert client.score("shoe", ADS).attempts == 2
    assert len(network.connections) == 2


def test_a_kept_connection_that_is_known_to_be_closed_is_closed_here_and_costs_no_attempt() -> None:
    network = SlowNetwork(FakeTime())
    with client_on(network) as client:
        client.score("shoe", ADS)
        network.hung_up = True
        assert client.score("shoe", ADS).attempts == 1
        assert (len(network.connections), network.closed) == (2, 1)


def test_an_answer_that_breaks_off_is_an_error_that_is_not_tried_again() -> None:
    network = SlowNetwork(FakeTime())
    network.answer = lambda sent: answer_over_http(sent)[:-10]
    with client_on(network) as client, pytest.raises(ConnectionFailed) as caught:
        client.score("shoe", ADS)
    assert caught.value.answer_begun
    assert len(network.connections) == 1


def test_a_connection_is_free_again_however_a_call_has_ended() -> None:
    network = SlowNetwork(FakeTime())
    whole = network.answer
    with client_on(network, max_connections=1) as client:
        client.score("shoe", ADS)
        network.refusing = {"127.0.0.1"}
        network.answer = lambda _: b""
        with pytest.raises(ConnectionFailed):  # the kept connection ends, another is refused
            client.score("shoe", ADS)
        network.refusing = set()
        network.answer = lambda sent: answer_over_http(sent)[:-10]
        with pytest.raises(ConnectionFailed):
            client.score("shoe", ADS)
        network.answer = whole
        assert client.score("shoe", ADS).complete


def test_a_call_that_finds_every_connection_in_use_waits_no_longer_than_it_may() -> None:
    network = SlowNetwork(FakeTime())
    transport = DeadlineTransport(max_connections=1, backend=network)
    timeout = {"timeout": httpx.Timeout(0.001).as_dict()}
    request = httpx.Request("POST", "http://127.0.0.1:1", json={"ads": []}, extensions=timeout)
    with transport, contextlib.closing(transport.handle_request(request)):
        with pytest.raises(httpx.PoolTimeout):
            transport.handle_request(request)
        with until(Deadline.after(1, time.monotonic)), pytest.raises(httpx.PoolTimeout):
            transport.handle_request(request)


@pytest.mark.parametrize("max_connections", [0, -1, 1.5, "10"])
def test_a_number_of_connections_that_cannot_work_is_refused(max_connections: int) -> None:
    with pytest.raises((TypeError, ValueError), match="max_connections"):
        DeadlineTransport(max_connections=max_connections)


def test_a_connection_that_is_in_use_at_the_end_is_closed_after_it() -> None:
    network = SlowNetwork(FakeTime())
    client = client_on(network)

    def answer(sent: bytes) -> bytes:
        client.close()
        return answer_over_http(sent)

    network.answer = answer
    assert client.score("shoe", ADS).complete
    assert network.closed == 1


def both_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(0, 0, 0, "", ("::1", 80, 0, 0)), (0, 0, 0, "", ("127.0.0.1", 80))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)


def test_the_next_address_of_a_host_is_tried_when_one_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both_addresses(monkeypatch)
    network = SlowNetwork(FakeTime())
    network.refusing = {"::1"}
    with until(Deadline.after(100, network.time.clock)):
        DeadlineBackend(network).connect_tcp("adrel.test", 80)
    assert network.connections == ["::1", "127.0.0.1"]


def test_all_addresses_of_a_host_share_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    both_addresses(monkeypatch)
    network = SlowNetwork(FakeTime(), connect_s=0.06)
    network.refusing = {"::1", "127.0.0.1"}
    started_s = network.time.now_s
    with until(Deadline.after(100, network.time.clock)), pytest.raises(httpcore.ConnectTimeout):
        DeadlineBackend(network).connect_tcp("adrel.test", 80)
    assert network.time.now_s == pytest.approx(started_s + 0.1)
