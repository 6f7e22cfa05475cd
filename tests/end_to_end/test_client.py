"""The client against the product: a real process, real sockets, real time."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from service.client import (
    Ad,
    AdrelClient,
    AdStatus,
    AsyncAdrelClient,
    ConnectionFailed,
    DeadlineExceeded,
    Overloaded,
    RequestRefused,
    RetryPolicy,
    ScoreResult,
    WrongEndpoint,
)
from tests.end_to_end.running_service import RunningService, running

ROOT = Path(__file__).parents[2]
AMPLE_MS = 30_000
ONCE = RetryPolicy(max_attempts=1)


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8) as started:
        yield started


def ads(n_ads: int, words: str = "shoe bag") -> list[Ad]:
    return [Ad(f"ad-{i}", text=f"{i} {words}") for i in range(n_ads)]


def long_ads(n_ads: int) -> list[Ad]:
    return ads(n_ads, "shoe bag " * 20)


def zero(_: str, __: Ad) -> float:
    return 0.0


def test_both_clients_return_what_the_service_says(service: RunningService) -> None:
    asked = [Ad("B", "cheap red shoe", "run fast"), Ad("A", text="blue bag " * 100)]
    body = {
        "query": "red shoe",
        "ads": [
            {"id": "B", "title": "cheap red shoe", "description": "run fast"},
            {"id": "A", "text": "blue bag " * 100},
        ],
        "min_score": 0.5,
    }
    said = service.score(body).json()

    async def ask() -> ScoreResult:
        async with AsyncAdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
            return await client.score("red shoe", asked, min_score=0.5, request_id="r-1")

    with AdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
        results = [client.score("red shoe", asked, min_score=0.5, request_id="r-1")]
    results.append(asyncio.run(ask()))
    for result in results:
        assert [(ad.id, ad.score) for ad in result.scores] == [
            (ad["id"], ad["score"]) for ad in said["scores"]
        ]
        assert [ad.eligible for ad in result.scores] == [ad["eligible"] for ad in said["scores"]]
        assert [ad.truncated for ad in result.scores] == [False, True]
        assert result.complete
        assert (result.request_id, result.attempts) == ("r-1", 1)
        assert result.model is not None
        assert result.timing is not None
        assert result.model.version == said["model"]["version"]
        assert 0 < result.timing.total_ms < result.elapsed_ms


def test_the_readmes_example_runs_as_it_stands(
    service: RunningService, capsys: pytest.CaptureFixture[str]
) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("### From Python")[1]
    example = section.split("```python\n")[1].split("```")[0]
    assert example.count("http://127.0.0.1:8000") == 1
    code = compile(example.replace("http://127.0.0.1:8000", service.url), "README.md", "exec")
    exec(code, {})  # noqa: S102  # our own text
    shown = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[0] for line in shown] == ["A", "B"]
    for _, score, status, eligible in shown:
        assert status in ("ok", "cached", "fallback")
        assert eligible == str(float(score) >= 0.5)


def test_many_tasks_share_a_client(service: RunningService) -> None:
    async def ask() -> list[ScoreResult]:
        async with AsyncAdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
            calls = [client.score(f"red {i}", ads(4), request_id=f"r-{i}") for i in range(150)]
            return await asyncio.gather(*calls)

    results = asyncio.run(ask())
    assert [result.request_id for result in results] == [f"r-{i}" for i in range(150)]
    assert all(result.complete for result in results)


def test_proxies_that_the_environment_names_are_not_asked(
    service: RunningService, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> ScoreResult:
        async with AsyncAdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
            return await client.score("red", ads(1))

    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with AdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
        assert client.score("red", ads(1)).complete
    assert asyncio.run(ask()).complete


def test_a_wrong_request_is_refused_with_the_field(service: RunningService) -> None:
    with AdrelClient(service.url, timeout_ms=AMPLE_MS) as client:
        with pytest.raises(ValueError, match=r"ads\[0\]: an ad needs a title or a text"):
            client.score_or_fallback("red", [Ad("A")], zero)
        with pytest.raises(RequestRefused, match="too_many_ads") as caught:
            client.score_or_fallback("red", ads(1001), zero)
        assert caught.value.details[0]["field"] == "ads"
        with pytest.raises(ValueError, match="query: takes text, got half of a surrogate pair at"):
            client.score("half a surrogate pair: \ud800", ads(1))


def test_a_wrong_path_is_told_apart_and_costs_no_auction(service: RunningService) -> None:
    with AdrelClient(f"{service.url}/nowhere", timeout_ms=AMPLE_MS) as lost:
        with pytest.raises(WrongEndpoint, match="not_found"):
            lost.score("red", ads(1))
        result = lost.score_or_fallback("red", ads(1), zero)
    assert isinstance(result.error, WrongEndpoint)
    assert [ad.score for ad in result.scores] == [0.0]


def test_a_partial_answer_is_filled_by_the_fallback(tiny_bundle_int8: Path) -> None:
    arguments = ("--inference-threads", "1", "--max-batch-pairs", "1", "--cache-bytes", "0")
    with (
        running(tiny_bundle_int8, *arguments) as slow,
        AdrelClient(slow.url, timeout_ms=AMPLE_MS) as client,
    ):
        seen: set[AdStatus] = set()
        for timeout_ms in range(10, 2000, 10):  # until it is enough for some ads and not for all
            result = client.score_or_fallback("red", long_ads(500), zero, timeout_ms=timeout_ms)
            seen = {ad.status for ad in result.scores}
            if len(seen) > 1:
                break
    assert seen == {AdStatus.OK, AdStatus.FALLBACK}
    assert result.error is None
    assert not result.complete
    assert all((ad.score == 0.0) == (ad.status == AdStatus.FALLBACK) for ad in result.scores)


def test_an_overloaded_service_says_when_to_come_back(tiny_bundle_int8: Path) -> None:
    def ask(number: int) -> ScoreResult | Overloaded:
        try:
            return client.score(f"red {number}", long_ads(8))
        except Overloaded as error:
            return error

    with running(tiny_bundle_int8, "--max-queue-ms", "5", "--inference-threads", "1") as small:
        with (
            AdrelClient(small.url, timeout_ms=AMPLE_MS, retry=ONCE) as client,
            ThreadPoolExecutor(16) as executor,
        ):
            outcomes = list(executor.map(ask, range(200)))
        patient = RetryPolicy(max_attempts=3, budget_burst=1000)
        with (
            AdrelClient(small.url, timeout_ms=AMPLE_MS, retry=patient) as client,
            ThreadPoolExecutor(16) as executor,
        ):
            filled = list(
                executor.map(
                    lambda i: client.score_or_fallback(f"blue {i}", long_ads(8), zero), range(200)
                )
            )
    refused = [outcome for outcome in outcomes if isinstance(outcome, Overloaded)]
    assert 0 < len(refused) < 200
    for error in refused:
        assert (error.code, error.http_status) == ("queue_full", 429)
        assert error.retry_after_s == error.details[0]["retry_after_ms"] / 1000
    assert max(result.attempts for result in filled) > 1
    for result in filled:
        assert all(ad.score is not None for ad in result.scores)
        assert result.complete == (result.error is None)
        if result.error is not None:
            assert isinstance(result.error, Overloaded)
            assert result.attempts == 3


def port_of(service: RunningService) -> str:
    return str(httpx.URL(service.url).port)


def test_a_service_that_is_restarted_between_two_calls_is_not_noticed(
    tiny_bundle_int8: Path,
) -> None:
    with running(tiny_bundle_int8) as first:
        port = port_of(first)
        client = AdrelClient(first.url, timeout_ms=AMPLE_MS)
        assert client.score("red", ads(3)).complete
    with client:
        with pytest.raises(ConnectionFailed):
            client.score("red", ads(3), timeout_ms=500)
        with running(tiny_bundle_int8, "--port", port):
            assert client.score("red", ads(3)).complete


def test_an_asynchronous_client_outlives_a_restart_too(tiny_bundle_int8: Path) -> None:
    async def ask() -> list[ScoreResult]:
        with running(tiny_bundle_int8) as first:
            client = AsyncAdrelClient(first.url, timeout_ms=AMPLE_MS)
            results = [await client.score("red", ads(3))]
        async with client:
            with running(tiny_bundle_int8, "--port", port_of(first)):
                results.append(await client.score("red", ads(3)))
            results.append(await client.score_or_fallback("red", ads(3), zero))
        return results

    before, after, gone = asyncio.run(ask())
    assert before.complete
    assert after.complete
    assert isinstance(gone.error, ConnectionFailed)
    assert [ad.status for ad in gone.scores] == [AdStatus.FALLBACK] * 3


def test_a_service_that_stands_still_costs_no_more_than_the_deadline(
    tiny_bundle_int8: Path,
) -> None:
    async def ask(url: str) -> ScoreResult:
        async with AsyncAdrelClient(url, timeout_ms=50) as client:
            return await client.score_or_fallback("red", ads(2), zero)

    with (
        running(tiny_bundle_int8) as service,
        AdrelClient(service.url, timeout_ms=50) as client,
    ):
        client.score("red", ads(2), timeout_ms=AMPLE_MS)
        service.process.send_signal(signal.SIGSTOP)
        try:
            with pytest.raises(DeadlineExceeded):
                client.score("red", ads(2))
            results = [client.score_or_fallback("red", ads(2), zero), asyncio.run(ask(service.url))]
        finally:
            service.process.send_signal(signal.SIGCONT)
        assert client.score("red", ads(2), timeout_ms=AMPLE_MS).complete
    for result in results:
        assert isinstance(result.error, DeadlineExceeded)
        assert result.attempts == 1
        assert 50 <= result.elapsed_ms < 5000  # loose: the machine's neighbours have a say


def test_a_connection_that_closes_as_the_request_arrives_is_replaced() -> None:
    """A restart that falls between the look at a kept connection and its use."""
    answer = (
        b'{"request_id":"r-1","model":{"name":"n","version":"v"},"scores":'
        b'[{"id":"A","score":0.5,"status":"ok"}],'
        b'"timing_ms":{"encode":0,"queue":0,"inference":0,"total":0}}'
    )
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"

    def serve() -> None:
        for n_answers in (1, 2):  # the first connection breaks at its second request
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as lines:
                for number in range(2):
                    length = 0
                    while line := lines.readline().strip():
                        name, _, value = line.partition(b": ")
                        length = int(value) if name.lower() == b"content-length" else length
                    lines.read(length)
                    if number == n_answers:
                        break
                    connection.sendall(head % len(answer) + answer)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = threading.Thread(target=serve, daemon=True)
        server.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with AdrelClient(url, timeout_ms=AMPLE_MS) as client:
            attempts = [
                client.score("red", [Ad("A", text="x")], request_id="r-1").attempts
                for _ in range(3)
            ]
        server.join(timeout=30)
    assert attempts == [1, 2, 1]
