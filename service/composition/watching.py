"""What sees to it that batches end, that the event loop turns, and that a stop ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from service.api.state import ServiceState
from service.batching.batcher import Batcher
from service.batching.watchdog import BatchWatchdog, ThreadUse
from service.clock import Clock
from service.cpu import thread_core_s
from service.loop_lag import LoopLagProbe
from service.loop_watch import LoopWatch
from service.scoring.encoding import EncodedPair


@asynccontextmanager
async def watching(
    watchdog_s: float, state: ServiceState, clock: Clock, batcher: Batcher[EncodedPair]
) -> AsyncIterator[None]:
    """Watch while the block runs; that a stop ends is seen to the last.

    Args:
        watchdog_s: What may stand still for so long.
        state: Given what a stop signal calls.
        clock: Monotonic time.
        batcher: Runs the batches.
    """
    watchdog = BatchWatchdog(batcher.batches, batcher.give_up, watchdog_s, _thread_use)
    loop_watch = LoopWatch(watchdog_s)

    def tick(lag_s: float) -> None:
        """Called ten times a second."""
        state.metrics.process.loop_lagged(lag_s)
        watchdog.look(clock.now_s())
        loop_watch.beat()

    def stop_is_asked(limit_s: float) -> None:
        """Called in the handler of the stop signal."""
        state.stopping = True
        loop_watch.leave_within(limit_s)

    state.stop_is_asked = stop_is_asked
    loop_lag = LoopLagProbe(clock, tick)
    loop_lag.start()
    loop_watch.start()
    yield
    loop_lag.stop()
    loop_watch.stop()


def _thread_use(thread_id: int) -> ThreadUse | None:
    use = thread_core_s(thread_id)
    return ThreadUse(*use) if use is not None else None
