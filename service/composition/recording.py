"""What becomes of the requests' records: a log, and traces where they are asked for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.api.compatible.release import release
from service.api.recording import once_answered
from service.api.request_log import RequestLog
from service.api.state import ServiceState
from service.api.tracing import start_tracing
from service.clock import Clock


@asynccontextmanager
async def recording(
    state: ServiceState, clock: Clock, *, every_request: bool
) -> AsyncIterator[None]:
    """Have each request's record told while the block runs.

    Args:
        state: Given who listens.
        clock: Monotonic time.
        every_request: Whether to log also those that ended well.
    """
    request_log = RequestLog(clock, every_request=every_request)
    tracing = start_tracing(os.environ, release(), clock.now_s)
    if tracing is None:
        state.request_listeners = (request_log,)
        yield
        return
    # Traces come first, since they name the trace for the log.
    state.request_listeners = (once_answered(tracing, request_log),)
    yield
    await tracing.stop()
