"""What goes to redis and what comes back, whoever packs and reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

Command = tuple[bytes, ...]
Answer = object
"""Bytes, None, or a list of them; `Refusal` where redis said no."""

OnAnswers = Callable[[list[Answer] | None], None]


class Refusal(Exception):
    """Redis answered an error: its first word, such as NOAUTH, LOADING or OOM.

    The rest is left out: an unknown command's names its arguments, be they a password.
    """

    def __init__(self, message: str) -> None:
        word = message.partition(" ")[0]
        self.word = word if word.isascii() and word.isalnum() and len(word) <= 32 else "an error"
        super().__init__(f"redis answered {self.word}")


class NotUsable(Exception):
    """Redis cannot be used now; the message says why, for the log."""


class Connection(Protocol):
    """What sends commands.

    Attributes:
        ended: Why it is no connection any more; None while it is one.
    """

    ended: str | None

    def send(self, commands: Sequence[Command], on_answers: OnAnswers) -> None:
        """Send commands at once; `on_answers` gets one answer each, None where it ended before."""

    def abort(self, why: str) -> None:
        """End it, with all questions that are under way."""


def once_read(callback: Callable[[], None]) -> None:
    """Call back when what lies in the sockets has been read.

    A loop that was held up runs its timers first, and what came in time meanwhile is not late.
    """
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.call_soon, callback)  # libuv reads between two rounds of callbacks


def answers_of(connection: Connection, commands: Sequence[Command]) -> asyncio.Future[list[Answer]]:
    """Send commands, for whoever has nothing to do but wait.

    Returns:
        Their answers in order, or NotUsable where the connection ended before.
    """
    come: asyncio.Future[list[Answer]] = asyncio.get_running_loop().create_future()

    def on_answers(answers: list[Answer] | None) -> None:
        if come.done():
            return  # nobody waits any more
        if answers is None:
            come.set_exception(NotUsable(connection.ended or "the connection has ended"))
        else:
            come.set_result(answers)

    connection.send(commands, on_answers)
    return come
