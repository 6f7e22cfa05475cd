"""Stand-ins for time and the model, so that tests decide what happens when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from service.batching.cost_model import BatchCost, CostModel
from service.batching.generation import Generation


@dataclass(frozen=True)
class FakePair:
    """An encoded pair that is nothing but a length and a logit."""

    length_tokens: int
    logit: float = 0.0
    truncated: bool = False


@dataclass
class FakeTimer:
    when_s: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@dataclass
class FakeClock:
    """Time that moves only when told to."""

    time_s: float = 100.0
    timers: list[FakeTimer] = field(default_factory=list)

    def now_s(self) -> float:
        return self.time_s

    def call_at(self, when_s: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(when_s, callback)
        self.timers.append(timer)
        return timer

    def advance(self, seconds: float) -> None:
        self.time_s += seconds
        due = [timer for timer in self.timers if timer.when_s <= self.time_s]
        self.timers = [timer for timer in self.timers if timer.when_s > self.time_s]
        for timer in sorted(due, key=lambda timer: timer.when_s):
            if not timer.cancelled:
                timer.callback()


class FakeModel:
    """Gives each pair its own logit; can be held, and can fail on command."""

    def __init__(self) -> None:
        self.batches: list[list[FakePair]] = []
        self.fail_on: Callable[[Sequence[FakePair]], bool] = lambda _: False
        self.rows_short = 0
        self._gate = threading.Event()
        self._gate.set()

    def hold(self) -> None:
        """Batches that start from now on wait for `release`."""
        self._gate.clear()

    def release(self) -> None:
        self._gate.set()

    def logits(self, pairs: Sequence[FakePair]) -> NDArray[np.float32]:
        self.batches.append(list(pairs))
        assert self._gate.wait(timeout=30), "the test never released the model"
        if self.fail_on(pairs):
            raise RuntimeError("the model was told to fail")
        rows = [[pair.logit] for pair in pairs][: len(pairs) - self.rows_short]
        return np.array(rows, dtype=np.float32)


def generation(model: FakeModel, cost: BatchCost | None = None) -> Generation[FakePair]:
    """The model's side in the batches, with what they are predicted to cost at first."""
    return Generation(model, CostModel(cost))


async def until(condition: Callable[[], bool]) -> None:
    """Let the event loop turn until the condition holds; no waiting by the clock."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  # the condition is the test's, not an event
            await asyncio.sleep(0)
