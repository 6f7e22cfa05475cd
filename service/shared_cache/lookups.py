"""Questions to redis: one MGET for all keys of a request, shared with whoever asks for the same."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from service.clock import Clock
from service.shared_cache.commands import Answer, Connection, Refusal, once_read
from service.shared_cache.counts import LookupResult
from service.shared_cache.link import Link


class Lookup:
    """One MGET under way.

    It belongs to no request: those who wait for it may leave without ending it for the others.

    Attributes:
        values: What stands under each key once it was answered; until then, and where it ended
            without an answer, None.
        failure: Why it ended without an answer.
    """

    def __init__(self) -> None:
        self.values: Mapping[bytes, Answer] | None = None
        self.failure: LookupResult | None = None
        self._waiting: list[asyncio.Future[None]] = []

    @property
    def ended(self) -> bool:
        """Nothing more will come of it."""
        return self.values is not None or self.failure is not None

    def end(self, result: Mapping[bytes, Answer] | LookupResult) -> None:
        """Tell those who wait."""
        if isinstance(result, LookupResult):
            self.failure = result
        else:
            self.values = result
        for waiting in self._waiting:
            _wake(waiting)
        self._waiting.clear()

    async def wait(self, clock: Clock, until_s: float) -> None:
        """Return when it has ended, or at an instant before."""
        if self.ended:
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(woken)
        timer = clock.call_at(until_s, lambda: once_read(lambda: _wake(woken)))
        try:
            await woken
        finally:
            timer.cancel()


class Lookups:
    """Mutable state: the lookups under way by key."""

    def __init__(
        self,
        link: Link,
        clock: Clock,
        timeout_s: float,
        on_ended: Callable[[float], None],
    ) -> None:
        """Ask nothing yet.

        Args:
            link: To redis.
            clock: Monotonic time.
            timeout_s: After which an answer is not waited for.
            on_ended: Told how many seconds each lookup took.
        """
        self._link = link
        self._clock = clock
        self._timeout_s = timeout_s
        self._on_ended = on_ended
        self._under_way: dict[bytes, Lookup] = {}

    def ask(self, keys: Sequence[bytes]) -> list[Lookup] | None:
        """Have keys looked up.

        Args:
            keys: At least one, each once.

        Returns:
            For each key the lookup that has it; None while redis is not to be asked.
        """
        connection = self._link.connection
        if connection is None:
            return None
        known = {key: self._under_way[key] for key in keys if key in self._under_way}
        new = [key for key in keys if key not in known]
        if new:
            known.update(dict.fromkeys(new, self._send(connection, new)))
        return [known[key] for key in keys]

    def _send(self, connection: Connection, keys: list[bytes]) -> Lookup:
        lookup, sent_s = Lookup(), self._clock.now_s()

        def end(result: Mapping[bytes, Answer] | LookupResult) -> None:
            timer.cancel()
            for key in keys:
                del self._under_way[key]
            self._on_ended(self._clock.now_s() - sent_s)
            lookup.end(result)

        def expire() -> None:
            if not lookup.ended:
                end(LookupResult.TIMEOUT)
                self._link.failed("redis answers too late")

        def on_answers(answers: list[Answer] | None) -> None:
            values = _values(keys, answers[0]) if answers else None
            if not lookup.ended:
                end(LookupResult.ERROR if values is None else values)
                if values is not None:
                    self._link.succeeded()
            if answers and isinstance(answers[0], Refusal):
                self._link.failed(str(answers[0]))
            elif answers and values is None:
                connection.abort("redis answers something else than was asked")

        self._under_way.update(dict.fromkeys(keys, lookup))
        timer = self._clock.call_at(sent_s + self._timeout_s, lambda: once_read(expire))
        connection.send([(b"MGET", *keys)], on_answers)
        return lookup


def _values(keys: Sequence[bytes], answer: Answer) -> dict[bytes, Answer] | None:
    """What stands under each key, if this answers MGET."""
    if not isinstance(answer, list) or len(answer) != len(keys):
        return None
    return dict(zip(keys, answer, strict=True))


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
