from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from service.domain import RestartReason
from service.workers.restart_policy import RestartPolicy
from service.workers.slot import CrashLoop, Patience, Slot, StartFailed
from service.workers.worker_process import WorkerProcess
from tests.service.workers.fakes import FakeWorker, as_process

pytestmark = pytest.mark.anyio
DEADLINE_S = 30
PATIENCE = Patience(start_s=0.05, sign_s=0.02, stop_s=0.02, look_s=0.001)
POLICY = RestartPolicy(steady_s=10, first_delay_s=0.001, max_delay_s=0.002, max_failures=3)


class Bench:
    """A slot whose workers are fakes, made by `make` in turn."""

    def __init__(self, make: Callable[[int], FakeWorker | OSError]) -> None:
        self.workers: list[FakeWorker] = []
        self.ends: list[RestartReason | None] = []
        self.stopping = asyncio.Event()
        self._make = make
        self._tries = 0
        self.others_serve = False
        self.slot = Slot(
            1,
            self._start,
            PATIENCE,
            POLICY,
            lambda _, why: self.ends.append(why),
            lambda: self.others_serve,
        )

    async def _start(self) -> WorkerProcess:
        made = self._make(self._tries)
        self._tries += 1
        if isinstance(made, OSError):
            raise made
        self.workers.append(made)
        return as_process(made)

    def keep_up(self, *, first: bool = False) -> Awaitable[None]:
        return asyncio.wait_for(self.slot.keep_up(self.stopping, first=first), DEADLINE_S)

    async def has_started(self, n_workers: int) -> None:
        async with asyncio.timeout(DEADLINE_S):
            while len(self.workers) < n_workers or not self.slot.worker:  # noqa: ASYNC110  # it has no event
                await asyncio.sleep(0)


def steady(_: int) -> FakeWorker:
    return FakeWorker(served_s=10)


def dead_at_once(_: int) -> FakeWorker:
    worker = FakeWorker()
    worker.end(1)
    return worker


async def test_a_worker_that_dies_has_another_in_its_place() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    for number in range(1, 6):  # however often, when each has served for long
        await bench.has_started(number)
        bench.workers[-1].end(-9)
    await bench.has_started(6)
    assert bench.ends == [RestartReason.DIED] * 5
    bench.stopping.set()
    await life
    assert bench.workers[-1].signals == ["stop"]
    assert bench.ends[-1] is None


async def test_workers_that_die_one_after_the_other_end_it_in_words() -> None:
    bench = Bench(dead_at_once)
    with pytest.raises(CrashLoop, match=r"worker 1 ended 4 times in a row .* by exit code 1"):
        await bench.keep_up()
    assert len(bench.workers) == 4


async def test_as_long_as_another_worker_serves_this_one_is_tried_on() -> None:
    bench = Bench(dead_at_once)
    bench.others_serve = True
    life = asyncio.ensure_future(bench.keep_up())
    async with asyncio.timeout(DEADLINE_S):
        while len(bench.workers) < 3 * POLICY.max_failures:  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(0)
    bench.others_serve = False
    with pytest.raises(CrashLoop):
        await life


async def test_one_that_says_that_only_a_new_process_helps_is_stopped_and_replaced() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.workers[0].unfit = True
    await bench.has_started(2)
    assert bench.workers[0].signals == ["stop"]
    assert bench.ends == [RestartReason.HUNG]
    bench.stopping.set()
    await life


async def test_processes_that_cannot_be_started_end_it_too() -> None:
    bench = Bench(lambda _: OSError(12, "Cannot allocate memory"))
    with pytest.raises(CrashLoop, match="Cannot allocate memory"):
        await bench.keep_up()


async def test_a_process_that_could_not_be_started_once_is_tried_again() -> None:
    bench = Bench(lambda number: OSError(11, "again") if number == 0 else steady(number))
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.stopping.set()
    await life


async def test_the_first_worker_of_all_is_not_tried_twice() -> None:
    bench = Bench(dead_at_once)
    with pytest.raises(StartFailed) as failed:
        await bench.keep_up(first=True)
    assert failed.value.exit_code == 1
    assert len(bench.workers) == 1


async def test_one_that_gives_no_sign_is_killed_and_replaced() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.workers[0].served.set()
    await bench.has_started(2)
    assert bench.workers[0].signals[0] == "kill"
    assert bench.ends == [RestartReason.HUNG]
    bench.stopping.set()
    await life


async def test_one_that_gives_signs_stays() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.workers[0].served.set()
    for _ in range(100):
        bench.workers[0].silent_s = 0.0
        await asyncio.sleep(PATIENCE.look_s)
    assert bench.workers[0].signals == []
    bench.stopping.set()
    await life


async def test_one_that_cannot_serve_what_the_others_do_is_stopped_and_replaced() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.workers[0].replaced = True
    await bench.has_started(2)
    assert bench.workers[0].signals == ["stop"]
    assert bench.ends == [RestartReason.RELOAD]
    bench.stopping.set()
    await life


async def test_one_that_does_not_stop_is_killed() -> None:
    bench = Bench(steady)
    life = asyncio.ensure_future(bench.keep_up())
    await bench.has_started(1)
    bench.workers[0].ignores_stop = True
    bench.stopping.set()
    await life
    assert bench.workers[0].signals[:2] == ["stop", "kill"]
    assert bench.ends == [None]
