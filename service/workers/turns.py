"""Who takes a new connection: the worker that has the fewest.

All workers wait on one listening socket, so that a dead or hanging one takes nothing along: what it
does not accept another does. But whichever wakes first would accept all that waits (of 16
connections that came at once one of two took 16), and connections are kept for hours. So a worker
that does not have the fewest leaves the others a moment, and only then takes one itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import mmap
import os
import socket
import struct
from collections.abc import Callable

logger = logging.getLogger(__name__)

OTHERS_FIRST_S = 0.002
"""How long the others are given. The event loop's timers count in milliseconds; an idle worker
needs a tenth of one."""

NO_ROOM_S = 1.0  # until the next try, as asyncio's servers have it

ABSENT = -1
SLOT = 8  # bytes of a number, written and read in one go


class ConnectionCounts:
    """Open connections of each worker, in memory that all of them share.

    Each number is written by its worker alone, and set to absent by the supervisor when the worker
    has ended.
    """

    def __init__(self, file: int, n_workers: int) -> None:
        """Map.

        Args:
            file: Descriptor of `shared_counts`; may be closed afterwards.
            n_workers: That share it.
        """
        self._memory = mmap.mmap(file, n_workers * SLOT)
        self._counts = memoryview(self._memory).cast("q")

    def set(self, slot: int, n_open: int) -> None:
        """Tell how many connections a worker has."""
        self._counts[slot] = n_open

    def others_first(self, slot: int, n_new: int) -> bool:
        """Whether another worker has fewer connections.

        Args:
            slot: Whose view it is.
            n_new: Connections that it has accepted and not told of yet.
        """
        own = self._counts[slot] + n_new
        return any(ABSENT < count < own for count in self._counts)


def shared_counts(n_workers: int) -> int:
    """Descriptor of the memory for `ConnectionCounts`, all absent; inherited like a file."""
    file = os.memfd_create("adrel-connections")
    os.write(file, struct.pack("q", ABSENT) * n_workers)
    return file


class TurnTakingListener:
    """Accepts one connection at a time from a socket that other processes accept from too."""

    def __init__(
        self,
        listener: socket.socket,
        others_first: Callable[[int], bool],
        protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        """Set up; nothing is accepted before `start`.

        Args:
            listener: It listens.
            others_first: Whether another worker has fewer connections than this one has, with so
                many that were just accepted.
            protocol: Makes what serves one connection.
        """
        self._listener = listener
        self._others_first = others_first
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._waiting: asyncio.TimerHandle | None = None
        self._connecting: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Accept."""
        self._listener.setblocking(False)
        self._loop.add_reader(self._listener, self._look)

    async def close(self) -> None:
        """Accept no more; what waits is left to others, what was accepted is connected."""
        if self._waiting is not None:
            self._waiting.cancel()
        self._loop.remove_reader(self._listener)
        self._listener.close()
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _look(self) -> None:
        if self._others_first(len(self._connecting)):
            self._wait(OTHERS_FIRST_S)
        else:
            self._accept()

    def _wait(self, for_s: float) -> None:
        self._loop.remove_reader(self._listener)
        self._waiting = self._loop.call_later(for_s, self._take_over)

    def _take_over(self) -> None:
        self._waiting = None
        self._loop.add_reader(self._listener, self._look)
        self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):  # another was quicker; the peer has left
            return
        except OSError:  # too many open files, mostly: it would be so again at once
            logger.exception("a connection was not accepted")
            self._wait(NO_ROOM_S)
            return
        task = self._loop.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        with contextlib.suppress(OSError):  # the peer has left
            await self._loop.connect_accepted_socket(self._protocol, connection)
