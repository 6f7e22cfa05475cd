"""Work that goes on beside the requests for as long as the service runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from service.api.keys import ApiKeys


@asynccontextmanager
async def in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Have the work done beside what the block does, and cancelled at its end."""
    task = asyncio.create_task(work)
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def up_to_date(keys: ApiKeys | None) -> AsyncIterator[None]:
    """Keep the keys what their file says, where there are any."""
    if keys is None:
        yield
        return
    async with in_background(keys.keep_following()):
        yield
