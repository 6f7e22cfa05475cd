"""From an address to a connection on which redis answers."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable

from service.shared_cache.address import RedisAddress
from service.shared_cache.commands import Command, NotUsable, Refusal, answers_of
from service.shared_cache.connection import RedisConnection, named

CONNECT_TIMEOUT_S = 1.0


class RedisConnector:
    """Connects, and logs in."""

    def __init__(
        self, address: RedisAddress, password: str | None, timeout_s: float = CONNECT_TIMEOUT_S
    ) -> None:
        """Connect nowhere yet.

        Args:
            address: Of redis.
            password: For AUTH, if it asks for one.
            timeout_s: For connecting and logging in.
        """
        self._address = address
        self._timeout_s = timeout_s
        self._greeting: list[Command] = []
        if password is not None:
            user = (address.user.encode(),) if address.user else ()
            self._greeting.append((b"AUTH", *user, password.encode()))
        if address.database:
            self._greeting.append((b"SELECT", b"%d" % address.database))
        # Once: reading the authorities takes milliseconds of the event loop.
        self._tls = ssl.create_default_context() if address.tls else None

    async def connect(self, on_lost: Callable[[str], None]) -> RedisConnection:
        """A connection that is logged in.

        Args:
            on_lost: As in `RedisConnection`.

        Raises:
            NotUsable: It cannot be reached in time, or does not let us in.
        """
        connection = RedisConnection(on_lost)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._open(connection)
                if self._greeting:
                    await self._log_in(connection)
        except BaseException as error:
            connection.abort("it is not wanted")
            if isinstance(error, OSError | UnicodeError):  # TimeoutError too; of a host's name
                raise NotUsable(f"cannot connect to redis: {named(error)}") from error
            raise
        return connection

    async def _open(self, connection: RedisConnection) -> None:
        loop, address = asyncio.get_running_loop(), self._address
        if address.path:
            await loop.create_unix_connection(lambda: connection, address.path)
        else:
            await loop.create_connection(
                lambda: connection, address.host, address.port, ssl=self._tls
            )

    async def _log_in(self, connection: RedisConnection) -> None:
        for answer in await answers_of(connection, self._greeting):
            if isinstance(answer, Refusal):
                raise NotUsable(str(answer))
