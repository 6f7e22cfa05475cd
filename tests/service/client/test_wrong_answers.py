"""Both clients against a server that sends too much, too little, or no HTTP, over real sockets."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

from service.client import (
    AdrelClient,
    AdrelError,
    AsyncAdrelClient,
    BadAnswer,
    ConnectionFailed,
    RetryPolicy,
    ScoreResult,
    WrongEndpoint,
)
from tests.service.client.scripted_server import right_answer, scripted_server
from tests.service.client.stand_ins import ADS

AMPLE_MS = 30_000
PATIENT = RetryPolicy(max_attempts=3, base_ms=0)

Outcome = ScoreResult | AdrelError
Ask = Callable[[str, int], list[Outcome]]
"""From a base URL and a number of calls to what came of each, one client for all."""


def ask_blocking(url: str, n_calls: int) -> list[Outcome]:
    outcomes: list[Outcome] = []
    with AdrelClient(url, timeout_ms=AMPLE_MS, retry=PATIENT) as client:
        for _ in range(n_calls):
            try:
                outcomes.append(client.score("shoe", ADS))
            except AdrelError as error:
                outcomes.append(error)
    return outcomes


def ask_asynchronous(url: str, n_calls: int) -> list[Outcome]:
    async def ask() -> list[Outcome]:
        outcomes: list[Outcome] = []
        async with AsyncAdrelClient(url, timeout_ms=AMPLE_MS, retry=PATIENT) as client:
            for _ in range(n_calls):
                try:
                    outcomes.append(await client.score("shoe", ADS))
                except AdrelError as error:
                    outcomes.append(error)
        return outcomes

    return asyncio.run(ask())


both = pytest.mark.parametrize("ask", [ask_blocking, ask_asynchronous])


def answered_twice(asked: dict[str, Any]) -> bytes:
    return right_answer(asked) + right_answer(asked)


def answered_and_begun_again(asked: dict[str, Any]) -> bytes:
    return right_answer(asked) + b"HTTP/1.1 2"


@both
@pytest.mark.parametrize("surplus", [answered_twice, answered_and_begun_again])
def test_a_connection_on_which_too_much_came_is_not_used_again(
    ask: Ask, surplus: Callable[[dict[str, Any]], bytes]
) -> None:
    with scripted_server(surplus) as server:
        first, second = ask(server.url, 2)
    assert isinstance(first, ScoreResult)
    assert isinstance(second, ScoreResult)
    assert (second.attempts, second.request_id) == (1, server.asked[1]["request_id"])
    assert server.connections == 2


@both
def test_an_answer_to_another_request_is_refused_and_ends_its_connection(ask: Ask) -> None:
    previous = right_answer({"ads": [{"id": ad.id} for ad in ADS], "request_id": "an-older-one"})
    with scripted_server(lambda _: previous) as server:
        first, second = ask(server.url, 2)
    assert isinstance(first, BadAnswer)
    assert "request_id: is 'an-older-one'" in first.message
    assert isinstance(second, ScoreResult)
    assert server.connections == 2


@both
def test_requests_whose_caller_gives_no_id_have_one_each(ask: Ask) -> None:
    with scripted_server() as server:
        outcomes = ask(server.url, 3)
    ids = [asked["request_id"] for asked in server.asked]
    assert len(set(ids)) == 3
    assert [isinstance(one, ScoreResult) and one.request_id for one in outcomes] == ids
    assert server.connections == 1


@both
@pytest.mark.parametrize(
    "nonsense",
    [b"220 mail.test ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Le", b"x" * 200_000, b""],
    ids=["another protocol", "half a head", "an endless head", "nothing"],
)
def test_what_is_no_answer_on_a_new_connection_is_asked_for_once(ask: Ask, nonsense: bytes) -> None:
    with scripted_server(lambda _: nonsense, closes_after=True) as server:
        (outcome,) = ask(server.url, 1)
    assert isinstance(outcome, ConnectionFailed)
    assert not outcome.unread
    assert len(server.asked) == 1


@both
@pytest.mark.parametrize("nonsense", [b"220 mail.test ESMTP\r\n\r\n", b"HTTP/1.1 200 OK\r\nConte"])
def test_nor_is_it_on_a_kept_one(ask: Ask, nonsense: bytes) -> None:
    def hang_up(_: dict[str, Any]) -> bytes:
        server.closes_after = True
        return nonsense

    with scripted_server(right_answer, hang_up) as server:
        first, second = ask(server.url, 2)
    assert isinstance(first, ScoreResult)
    assert isinstance(second, ConnectionFailed)
    assert len(server.asked) == 2


@both
def test_a_kept_connection_that_closes_without_a_byte_is_replaced(ask: Ask) -> None:
    with scripted_server(right_answer, lambda _: b"") as server:
        first, second = ask(server.url, 2)
    assert isinstance(first, ScoreResult)
    assert isinstance(second, ScoreResult)
    assert (first.attempts, second.attempts, server.connections) == (1, 2, 2)


@both
def test_a_host_that_there_is_not_is_a_wrong_address(ask: Ask) -> None:
    (outcome,) = ask("http://adrel.invalid", 1)  # RFC 6761: never resolves
    if isinstance(outcome, ConnectionFailed):
        pytest.skip(f"this machine's resolver does not answer: {outcome}")
    assert isinstance(outcome, WrongEndpoint)
    assert outcome.code == "unknown_host"


@both
def test_https_where_none_is_spoken_is_a_wrong_address(ask: Ask) -> None:
    n_connections = 0

    def serve() -> None:
        nonlocal n_connections
        while True:
            connection, _ = listener.accept()
            n_connections += 1
            with connection:
                if not connection.recv(65_536):
                    return
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        (outcome,) = ask(f"https://127.0.0.1:{listener.getsockname()[1]}", 1)
        socket.create_connection(listener.getsockname()).close()  # the last one
        thread.join(timeout=30)
    assert isinstance(outcome, WrongEndpoint)
    assert outcome.code == "tls_failed"
    assert n_connections == 1 + 1
