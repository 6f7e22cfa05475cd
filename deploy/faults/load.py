"""Open-loop load of which every request is accounted for, whatever becomes of the service."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import time
from collections.abc import Mapping, Sequence

from deploy.benchmarks.http_connection import Address
from deploy.faults.outcomes import Ended, Outcome, Request, Scores, judge

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

N_ADS = 4
SILENCE_AFTER_S = 30.0
"""Beyond its timeout; who has heard nothing by then never will."""

SURPLUS_S = 0.01  # what was sent twice has come long before


class Load:
    """Sends requests at their instants, answers or none, and keeps what became of each.

    Connections are kept, as callers do, and used again last come, first served.

    Attributes:
        sent: Requests that were sent, or for which nothing to send to was found.
        ended: What became of them.
        surplus: Connections on which more came than was asked for.
    """

    def __init__(
        self,
        address: Address,
        pairs: Sequence[tuple[str, Sequence[str]]],
        models: Mapping[str, Scores],
        timeout_ms: float,
        seed: int = 1,
    ) -> None:
        """Nothing is sent before `run`.

        Args:
            address: Of the service.
            pairs: Queries, with the ad texts that each may be asked with.
            models: The right scores by the version of each model that may serve.
            timeout_ms: Each request's.
            seed: Decides instants and contents.
        """
        self.sent = 0
        self.ended: list[Ended] = []
        self.surplus = 0
        self._address, self._pairs, self._models = address, pairs, models
        self._timeout_ms = timeout_ms
        self._rng = random.Random(seed)  # noqa: S311  # repeatable
        self._kept: list[Streams] = []
        self._ids = itertools.count()

    async def run(self, rate_per_s: float, stopped: asyncio.Event) -> None:
        """Send, at the instants of independent callers, and wait until the last one has its end.

        Args:
            rate_per_s: Mean requests a second.
            stopped: Set when no more are wanted.
        """
        due_s = time.monotonic()
        async with asyncio.TaskGroup() as asking:
            while not stopped.is_set():
                due_s += self._rng.expovariate(rate_per_s)
                await asyncio.sleep(max(0.0, due_s - time.monotonic()))
                self.sent += 1
                asking.create_task(self._ask(self._request()))
        for reader, writer in self._kept:
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(SURPLUS_S):
                    self.surplus += len(await reader.read(1))
            writer.close()
        self._kept.clear()

    def _request(self) -> Request:
        query, texts = self._rng.choice(self._pairs)
        chosen = tuple(self._rng.sample(texts, N_ADS))
        return Request(f"request-{next(self._ids)}", query, chosen)

    async def _ask(self, request: Request) -> None:
        sent_s = time.monotonic()
        try:
            async with asyncio.timeout(self._timeout_ms / 1000 + SILENCE_AFTER_S):
                outcome, version, why = await self._exchange(request)
        except TimeoutError:
            outcome, version, why = Outcome.SILENCE, None, "no answer"
        self.ended.append(Ended(sent_s, time.monotonic(), outcome, version, why))

    async def _exchange(self, request: Request) -> tuple[Outcome, str | None, str]:
        try:
            reader, writer = await self._connection()
        except OSError as error:
            return Outcome.REFUSED, None, type(error).__name__
        keep = False
        try:
            writer.write(self._wire(request))
            status, body, keep = await _read_answer(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            return Outcome.RESET, None, type(error).__name__
        finally:
            if keep:
                self._kept.append((reader, writer))
            else:
                writer.close()
        judged = judge(request, status, body, self._models)
        return judged.outcome, judged.version, judged.why

    async def _connection(self) -> Streams:
        while self._kept:
            reader, writer = self._kept.pop()
            # One that has more to say, or has ended, would give this request another's answer.
            if not reader.at_eof() and not writer.is_closing():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(*self._address)

    def _wire(self, request: Request) -> bytes:
        fields = {
            "query": request.query,
            "ads": [{"id": str(place), "text": text} for place, text in enumerate(request.texts)],
            "timeout_ms": self._timeout_ms,
            "request_id": request.id,
        }
        body = json.dumps(fields).encode()
        host, port = self._address
        head = (
            f"POST /v1/score HTTP/1.1\r\nHost: {host}:{port}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


async def _read_answer(reader: asyncio.StreamReader) -> tuple[int, bytes, bool]:
    """Status, body, and whether the connection may be used again."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
    body = await reader.readexactly(int(lines["content-length"]))
    return int(head[9:12]), body, lines.get("connection") != "close"
