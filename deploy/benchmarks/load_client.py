"""A lean HTTP/1.1 load client: on a machine shared with the service, the caller must cost little.

Requests are bytes made before the run; bodies of answers are kept, to be judged afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from deploy.benchmarks.http_connection import Address, Connection
from deploy.benchmarks.poisson_arrivals import arrivals_s, pace

STRAGGLERS_S = 5.0  # how long answers are waited for after the last request
RETRY_S = 0.01  # a closed-loop caller that was refused waits this long


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what came of it.

    Attributes:
        index: Which of the prepared requests.
        sent_s: `time.perf_counter` when it was sent, or in an open loop should have been.
        answered_s: When the whole answer was there, or the failure was known.
        status: HTTP status; 0 when there was no answer.
        body: The answer's body.
    """

    index: int
    sent_s: float
    answered_s: float
    status: int
    body: bytes

    @property
    def latency_ms(self) -> float:
        """Milliseconds from (intended) sending to the answer."""
        return (self.answered_s - self.sent_s) * 1000


def prepare(
    host: str,
    port: int,
    path: str,
    body_bytes: bytes,
    headers: Sequence[tuple[str, str]] = (),
) -> bytes:
    """The bytes of one `POST` of JSON over a connection that stays open."""
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: {host}:{port}",
        "Content-Type: application/json",
        f"Content-Length: {len(body_bytes)}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    return "\r\n".join(lines).encode("ascii") + b"\r\n\r\n" + body_bytes


async def closed_loop(
    address: Address, requests: Sequence[bytes], callers: int, duration_s: float
) -> list[Exchange]:
    """Each caller sends the next request as soon as it has its answer.

    The callers share the requests in order, and begin again at the end of them.

    Args:
        address: Host and port.
        requests: Made by `prepare`; at least one.
        callers: Requests under way at once.
        duration_s: No request is sent later than this; answers may come a little later.
    """
    exchanges: list[Exchange] = []
    indices = itertools.cycle(range(len(requests)))
    stop_s = time.perf_counter() + duration_s

    async def call() -> None:
        connection = Connection(address)
        with contextlib.closing(connection):
            while (now_s := time.perf_counter()) < stop_s:
                index = next(indices)
                await _exchange(connection, requests[index], index, now_s, exchanges)
                if exchanges[-1].status == 0:
                    await asyncio.sleep(RETRY_S)

    await _finish([asyncio.create_task(call()) for _ in range(callers)], duration_s + STRAGGLERS_S)
    return exchanges


async def open_loop(
    address: Address,
    requests: Sequence[bytes],
    rate_per_s: float,
    duration_s: float,
    max_connections: int,
    seed: int,
) -> list[Exchange]:
    """Poisson arrivals, whether answers come or not: a slow answer delays no later request.

    Latency counts from the instant when a request was due. One that finds all connections in
    use fails at once, with status 0.

    Args:
        address: Host and port.
        requests: Made by `prepare`; sent in order, over and over.
        rate_per_s: Mean arrivals per second.
        duration_s: How long requests keep arriving.
        max_connections: Requests under way at once, at most.
        seed: Decides the arrivals.
    """
    exchanges: list[Exchange] = []
    tasks: set[asyncio.Task[None]] = set()
    idle: list[Connection] = []
    connections: list[Connection] = []

    async def send(connection: Connection, index: int, due_s: float) -> None:
        await _exchange(connection, requests[index], index, due_s, exchanges)
        idle.append(connection)

    def arrive(number: int, due_s: float) -> None:
        index = number % len(requests)
        if not idle and len(connections) == max_connections:
            exchanges.append(Exchange(index, due_s, time.perf_counter(), 0, b""))
            return
        if not idle:
            idle.append(Connection(address))
            connections.append(idle[-1])
        task = asyncio.create_task(send(idle.pop(), index, due_s))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    try:
        await pace(arrivals_s(rate_per_s, duration_s, seed), arrive)
    finally:
        await _finish(list(tasks), STRAGGLERS_S)
        for connection in connections:
            connection.close()
    return exchanges


def latencies_ms(exchanges: Sequence[Exchange]) -> list[float]:
    """Sorted latencies of the exchanges that were answered with 200."""
    return sorted(exchange.latency_ms for exchange in exchanges if exchange.status == 200)


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest value that `percent` of all do not exceed; nan of none.

    Args:
        ordered: Values in ascending order.
        percent: From 0 to 100.
    """
    if not ordered:
        return math.nan
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def answered_per_s(exchanges: Sequence[Exchange], duration_s: float, lead_s: float = 0.0) -> float:
    """Answers with 200 per second, counted for `duration_s`.

    Args:
        exchanges: What a load of at least `lead_s + duration_s` gave.
        duration_s: How long is counted.
        lead_s: From the first request on nothing is counted for so long. A closed loop needs
            some: at its start no answer can be there yet.
    """
    if not exchanges:
        return 0.0
    start_s = min(exchange.sent_s for exchange in exchanges) + lead_s
    counted = [one for one in exchanges if 0 <= one.answered_s - start_s <= duration_s]
    return sum(exchange.status == 200 for exchange in counted) / duration_s


async def _exchange(
    connection: Connection, request: bytes, index: int, sent_s: float, into: list[Exchange]
) -> None:
    """Ask once and note what came of it, also when there is no more time to wait."""
    status, body = 0, b""
    try:
        status, body = await connection.ask(request)
    finally:
        into.append(Exchange(index, sent_s, time.perf_counter(), status, body))


async def _finish(tasks: Sequence[asyncio.Task[None]], timeout_s: float) -> None:
    """Wait for the tasks, then cancel what is left; raises what a task raised."""
    if not tasks:
        return
    _, late = await asyncio.wait(tasks, timeout=timeout_s)
    for task in late:
        task.cancel()
    for outcome in await asyncio.gather(*tasks, return_exceptions=True):
        if isinstance(outcome, Exception):
            raise outcome
