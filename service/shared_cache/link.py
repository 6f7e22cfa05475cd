"""Keeps a connection to redis as long as redis is of use, and says when there is none.

All waiting is done here, in a task of its own: connecting, logging in, trying again. Requests ask
for `connection` and go on without the shared cache where it is None.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable

from service.clock import Clock
from service.shared_cache.breaker import Breaker, BreakerState
from service.shared_cache.commands import (
    Answer,
    Command,
    Connection,
    NotUsable,
    Refusal,
    answers_of,
    once_read,
)
from service.shared_cache.entry import PREFIX

logger = logging.getLogger(__name__)

# Two keys, so that a member of a redis cluster, which may not have both, says so here (CROSSSLOT).
PROBE: Command = (b"MGET", PREFIX + b"probe-1", PREFIX + b"probe-2")
N_PROBES = 3  # one of them in time is enough

Connect = Callable[[Callable[[str], None]], Awaitable[Connection]]


class Link:
    """Owns the connection and the breaker.

    Attributes:
        connection: None unless the breaker is closed.
    """

    def __init__(self, connect: Connect, breaker: Breaker, clock: Clock, timeout_s: float) -> None:
        """Connect to nothing before `run`.

        Args:
            connect: A new connection, or NotUsable; what it is given wants to know of its end.
            breaker: Open.
            clock: Monotonic time.
            timeout_s: In which redis has to answer to be of use.
        """
        self.connection: Connection | None = None
        self._connect = connect
        self._breaker = breaker
        self._clock = clock
        self._timeout_s = timeout_s
        self._lost = asyncio.Event()
        self._told: str | None = None

    @property
    def state(self) -> BreakerState:
        """Of the breaker."""
        return self._breaker.state

    def succeeded(self) -> None:
        """A lookup was answered in time."""
        self._breaker.succeeded()

    def failed(self, why: str) -> None:
        """A lookup was of no use; enough of them end the connection."""
        if self._breaker.failed(self._clock.now_s()):
            self._let_go(why)

    async def run(self) -> None:
        """Connect whenever the breaker lets us, until cancelled."""
        try:
            while True:
                await self._until(self._breaker.retry_at_s)
                self._breaker.try_again()
                try:
                    await self._use()
                except NotUsable as error:
                    self._give_up(str(error))
                except Exception:
                    logger.exception("the shared cache could not be reached for a reason of ours")
                    self._give_up("a fault of ours")
        finally:
            self._breaker.open(self._clock.now_s())  # so that nobody takes it for a loss
            if self.connection is not None:
                self.connection.abort("the service stops")

    async def _use(self) -> None:
        """Connect, and return when the connection has ended."""
        self._lost.clear()
        connection = await self._connect(self._on_lost)
        try:
            await self._probe(connection)
            if connection.ended is not None:  # by what came right after the answer
                raise NotUsable(connection.ended)
        except BaseException:
            connection.abort("it is of no use")
            raise
        self.connection = connection
        self._breaker.close()
        self._told = None
        logger.info("the shared cache is in use")
        await self._lost.wait()

    async def _probe(self, connection: Connection) -> None:
        """See whether redis answers, and soon enough.

        Raises:
            NotUsable: It does not.
        """
        for _ in range(N_PROBES):
            answers = answers_of(connection, [PROBE])
            expire = functools.partial(once_read, functools.partial(_expire, answers))
            timer = self._clock.call_at(self._clock.now_s() + self._timeout_s, expire)
            try:
                [answer] = await answers
            except TimeoutError:
                continue
            finally:
                timer.cancel()
            if isinstance(answer, Refusal):
                raise NotUsable(str(answer))
            if not isinstance(answer, list):
                raise NotUsable("redis answers something else than was asked")
            return
        raise NotUsable(f"redis does not answer within {self._timeout_s * 1000:g} ms")

    def _on_lost(self, why: str) -> None:
        """A connection has ended; before it was in use, whoever waits for it knows already."""
        if self._breaker.state is BreakerState.CLOSED:
            self._breaker.open(self._clock.now_s())
            self._let_go(why)

    def _let_go(self, why: str) -> None:
        self._tell(why)
        connection, self.connection = self.connection, None
        self._lost.set()
        if connection is not None:
            connection.abort(why)

    def _give_up(self, why: str) -> None:
        self._breaker.open(self._clock.now_s())
        self._tell(why)

    def _tell(self, why: str) -> None:
        """Once for each reason, not once for each attempt."""
        if why != self._told:
            self._told = why
            logger.warning("the shared cache is not in use", extra={"why": why})

    async def _until(self, when_s: float) -> None:
        come = asyncio.Event()
        timer = self._clock.call_at(when_s, come.set)
        try:
            await come.wait()
        finally:
            timer.cancel()


def _expire(answers: asyncio.Future[list[Answer]]) -> None:
    if not answers.done():
        answers.set_exception(TimeoutError())
