"""Sockets whose every operation takes time: the sum is what the deadline bounds."""

from __future__ import annotations

import contextlib
import json
import time

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.client import AdrelClient, ConnectionFailed, DeadlineExceeded, DeadlineTransport
from service.client.deadline import Deadline
from service.client.deadline_network import until
from tests.service.client.slow_network import SlowNetwork, answer_over_http
from tests.service.client.stand_ins import ADS, FakeTime


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
    with client_on(network) as client, pytest.raises(ConnectionFailed):
        client.score("shoe", ADS)
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
