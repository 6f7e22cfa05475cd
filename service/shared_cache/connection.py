"""One connection to redis: commands out, their answers back in the same order.

Redis answers the commands of a connection in turn, so nobody needs one alone: any number of
questions are under way at once. Who stops waiting leaves a place in the row, and the answer that
comes for it is thrown away; no answer reaches another question, and no connection ends because a
caller did.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import cast

from service.shared_cache.commands import Answer, Command, OnAnswers
from service.shared_cache.resp import AnswerReader, NotRedis, packed


class RedisConnection(asyncio.Protocol):
    """Mutable state: the reader, and the row of those whose answers are to come.

    Attributes:
        ended: Why it is no connection any more; None while it is one.
    """

    def __init__(self, on_lost: Callable[[str], None]) -> None:
        """Not connected yet.

        Args:
            on_lost: Told once that it has ended, and why, after all questions have ended.
        """
        self._on_lost = on_lost
        self._reader = AnswerReader()
        self._row: deque[tuple[int, list[Answer], OnAnswers]] = deque()
        self._transport: asyncio.Transport | None = None
        self.ended: str | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def send(self, commands: Sequence[Command], on_answers: OnAnswers) -> None:
        """Send commands at once.

        Args:
            commands: At least one.
            on_answers: Gets their answers in order, or None where the connection ended before.
        """
        if self.ended is not None or self._transport is None:
            on_answers(None)
            return
        self._row.append((len(commands), [], on_answers))
        self._transport.write(packed(commands))

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        try:
            for answer in self._reader.feed(data):
                self._take(answer)
                if self.ended is not None:
                    return
        except NotRedis as error:
            self.abort(str(error))

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._end("redis closed the connection" if exc is None else named(exc))

    def abort(self, why: str) -> None:
        """End it, with all questions that are under way."""
        if self._transport is not None:
            self._transport.abort()
        self._end(why)

    def _take(self, answer: Answer) -> None:
        if not self._row:
            self.abort("an answer came that nobody asked for")
            return
        n_answers, answers, on_answers = self._row[0]
        answers.append(answer)
        if len(answers) == n_answers:
            self._row.popleft()
            on_answers(answers)

    def _end(self, why: str) -> None:
        if self.ended is not None:
            return
        self.ended = why
        row, self._row = self._row, deque()
        for _, _, on_answers in row:
            on_answers(None)
        self._on_lost(why)


def named(error: Exception) -> str:
    """An error of the network in the system's words."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
