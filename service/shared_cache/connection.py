"""One connection to redis: commands out, their answers back in the same order.

Redis answers the commands of a connection in turn, so nobody needs one alone: any number of
questions are under way at once. Who stops waiting leaves a place in the row, and the answer that
comes for it is thrown away; no answer reaches another question, and no connection ends because a
caller did. Bytes are packed and parsed by hiredis, which only this module knows.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import hiredis

from service.shared_cache.commands import Answer, Command, OnAnswers, Refusal

# Between two whole answers. The longest, of 1,000 pairs, has some 30 kB.
MAX_UNREAD_BYTES = 1_048_576

_NOT_WHOLE = object()


class RedisConnection(asyncio.Protocol):
    """Mutable state: the parser, and the row of those whose answers are to come."""

    def __init__(self, on_lost: Callable[[str], None]) -> None:
        """Not connected yet.

        Args:
            on_lost: Told once that it has ended, and why, after all questions have ended.
        """
        self._on_lost = on_lost
        self._reader = hiredis.Reader(replyError=Refusal, notEnoughData=_NOT_WHOLE)
        self._row: deque[tuple[int, list[Answer], OnAnswers]] = deque()
        self._unread_bytes = 0
        self._transport: asyncio.Transport | None = None
        self._ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self._transport = cast("asyncio.Transport", transport)

    def send(self, commands: Sequence[Command], on_answers: OnAnswers) -> None:
        """Send commands at once.

        Args:
            commands: At least one.
            on_answers: Gets their answers in order, or None where the connection ended before.
        """
        if self._ended or self._transport is None:
            on_answers(None)
            return
        self._row.append((len(commands), [], on_answers))
        self._transport.write(b"".join(map(_packed, commands)))

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._unread_bytes += len(data)
        for answer in self._whole_answers(data):
            self._take(answer)
            if self._ended:
                return
        if self._unread_bytes > MAX_UNREAD_BYTES:
            self.abort("an answer is too long")

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._end("redis closed the connection" if exc is None else named(exc))

    def abort(self, why: str) -> None:
        """End it, with all questions that are under way."""
        if self._transport is not None:
            self._transport.abort()
        self._end(why)

    def _whole_answers(self, data: bytes) -> Iterator[Answer]:
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not _NOT_WHOLE:
                self._unread_bytes = 0
                yield answer
        except (hiredis.HiredisError, MemoryError, TypeError, ValueError):
            # Its own, and what Python says of lengths and keys that cannot be.
            self.abort("what came is not redis' protocol")

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
        if self._ended:
            return
        self._ended = True
        row, self._row = self._row, deque()
        for _, _, on_answers in row:
            on_answers(None)
        self._on_lost(why)


def named(error: Exception) -> str:
    """An error of the network in the system's words."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__


def _packed(command: Command) -> bytes:
    # hiredis declares a tuple of one where it takes one of any length.
    return cast("bytes", hiredis.pack_command(cast("Any", command)))
