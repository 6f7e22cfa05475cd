"""Work that may never end, in a thread that nobody waits for when the service stops."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def in_daemon_thread(work: Callable[[], T], name: str) -> asyncio.Future[T]:
    """Have it done beside the event loop.

    Not by the loop's executor: the interpreter's exit joins its threads, a stuck one for ever.

    Args:
        work: What to do.
        name: Of the thread.

    Returns:
        What comes of it, on the running loop. An error that nobody asks for is not told.

    Raises:
        RuntimeError: The machine has no thread left.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(outcome: T | None, error: Exception | None) -> None:
        if future.done():  # cancelled meanwhile
            return
        if error is None:
            future.set_result(outcome)  # type: ignore[arg-type]  # what the work gave
            return
        future.set_exception(error)
        future.exception()  # marks it as seen, for one that comes when nobody waits any more

    def run() -> None:
        outcome, failed = None, None
        try:
            outcome = work()
        except Exception as error:
            failed = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: the service has stopped
            loop.call_soon_threadsafe(settle, outcome, failed)

    threading.Thread(target=run, name=name, daemon=True).start()
    return future
