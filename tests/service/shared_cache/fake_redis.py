"""Stand-ins for a connection: the test decides what redis answers, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from service.shared_cache.commands import Answer, Command, NotUsable, OnAnswers
from tests.fakes import FakeClock


class FakeConnection:
    """Keeps what was sent until the test answers it, in turn."""

    def __init__(self, on_lost: Callable[[str], None] = lambda _: None) -> None:
        self.sent: list[Sequence[Command]] = []
        self.ended: str | None = None
        self._on_lost = on_lost
        self._row: list[OnAnswers] = []

    def send(self, commands: Sequence[Command], on_answers: OnAnswers) -> None:
        self.sent.append(commands)
        self._row.append(on_answers)

    def answer(self, *answers: Answer) -> None:
        """Of the oldest question: one for each of its commands."""
        self._row.pop(0)(list(answers))

    def abort(self, why: str) -> None:
        if self.ended is None:
            self.ended = why
            row, self._row = self._row, []
            for on_answers in row:
                on_answers(None)
            self._on_lost(why)


class FakeRedis:
    """Makes connections; each answers its first question, which is the probe's."""

    def __init__(self) -> None:
        self.connections: list[FakeConnection] = []
        self.refuses: NotUsable | None = None
        self.probe_answers: list[Answer] = [[None, None]]
        self.n_attempts = 0

    async def connect(self, on_lost: Callable[[str], None]) -> FakeConnection:
        self.n_attempts += 1
        if self.refuses is not None:
            raise self.refuses
        connection = FakeConnection(on_lost)
        self.connections.append(connection)
        if self.probe_answers:
            asyncio.get_running_loop().call_soon(self._answer_probe, connection)
        return connection

    def _answer_probe(self, connection: FakeConnection) -> None:
        if connection.sent:
            connection.answer(*self.probe_answers)


async def turns(number: int = 20) -> None:
    """Let the event loop turn: enough for what is ready to have run."""
    for _ in range(number):
        await asyncio.sleep(0)


async def pass_time(clock: FakeClock, seconds: float) -> None:
    """What is ready runs, time passes, and what is due runs."""
    await turns()
    clock.advance(seconds)
    await turns()
