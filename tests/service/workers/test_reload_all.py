from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from service.domain import ReloadResult
from service.errors import BundleRefused, ReloadRunning, ServiceError
from service.startup_errors import BundleMissing
from service.workers.link import AskFailed, LinkLost
from service.workers.reload_all import ReloadAll, overall
from service.workers.shared_folder import PinnedBundle
from service.workers.slot import Slot
from service.workers.worker_process import WorkerProcess
from tests.service.workers.fakes import FakeLink, FakeWorker, as_process

pytestmark = pytest.mark.anyio
DEADLINE_S = 30
CHANGED = {"result": "changed", "took_ms": 1.0, "version": "2"}


class FakePinned:
    """Notes what was asked of it."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.trouble: Exception | None = None

    def advance(self) -> Path:
        if self.trouble is not None:
            raise self.trouble
        self.calls.append("advance")
        return Path("old")

    def go_back(self, before: Path) -> None:
        self.calls.append(f"back to {before}")

    def tidy(self) -> None:
        self.calls.append("tidy")


class FakeSlot:
    """With a worker that serves and answers a reload so."""

    def __init__(self, number: int, answer: object, *, serves: bool = True) -> None:
        self.number = number
        self.link = FakeLink(reload=answer)
        self.fake = FakeWorker(self.link)
        self.worker: WorkerProcess | None = as_process(self.fake)
        if serves:
            self.fake.served.set()


class Bench:
    def __init__(self, *answers: object) -> None:
        self.slots = [FakeSlot(number, answer) for number, answer in enumerate(answers, start=1)]
        self.pinned = FakePinned()
        self.n_failed = 0
        self.make()

    def make(self) -> None:
        pinned = cast("PinnedBundle", self.pinned)
        self.reloads = ReloadAll(cast("list[Slot]", self.slots), pinned, self._failed)

    def _failed(self) -> None:
        self.n_failed += 1

    async def reload(self) -> list[dict[str, Any]]:
        return await asyncio.wait_for(self.reloads.reload(), DEADLINE_S)

    def asked(self) -> list[int]:
        return [slot.number for slot in self.slots if slot.link.asked]


async def test_every_worker_loads_what_the_folder_holds() -> None:
    bench = Bench(CHANGED, CHANGED)
    outcomes = await bench.reload()
    assert outcomes == [{"worker": 1, **CHANGED}, {"worker": 2, **CHANGED}]
    assert overall(outcomes) is ReloadResult.CHANGED
    assert bench.pinned.calls == ["advance", "tidy"]


async def test_what_the_canary_refuses_no_other_is_asked_to_load() -> None:
    bench = Bench({"refused": "no bundle at x"}, CHANGED)
    with pytest.raises(BundleRefused, match="serves on: no bundle at x"):
        await bench.reload()
    assert bench.asked() == [1]
    assert bench.pinned.calls == ["advance", "back to old"]
    assert bench.n_failed == 0  # the canary counts what it refuses


@pytest.mark.parametrize(
    ("trouble", "told"),
    [
        (BundleMissing(Path("x")), (BundleRefused, "serves on: no bundle at x")),
        (OSError("disk full"), (ServiceError, "could not be pinned: disk full")),
    ],
)
async def test_what_cannot_be_pinned_no_worker_is_asked_to_load(
    trouble: Exception, told: tuple[type[Exception], str], caplog: pytest.LogCaptureFixture
) -> None:
    bench = Bench(CHANGED, CHANGED)
    bench.pinned.trouble = trouble
    error, message = told
    with pytest.raises(error, match=message):
        await bench.reload()
    assert bench.asked() == []
    assert bench.pinned.calls == []
    assert bench.n_failed == 1
    assert [one.message for one in caplog.records] == ["the bundle was not reloaded"]


@pytest.mark.parametrize("trouble", [LinkLost(), AskFailed("bug")])
async def test_a_canary_that_dies_or_fails_leaves_the_others_alone(trouble: Exception) -> None:
    bench = Bench(trouble, CHANGED)
    with pytest.raises(ServiceError):
        await bench.reload()
    assert bench.asked() == [1]
    assert bench.pinned.calls == ["advance", "back to old"]
    assert bench.n_failed == 1  # it cannot have counted that itself


@pytest.mark.parametrize(
    "answer", [{"refused": "no memory"}, AskFailed("bug"), LinkLost(), {**CHANGED, "version": "3"}]
)
async def test_a_later_one_that_does_not_serve_the_same_is_replaced(answer: object) -> None:
    bench = Bench(CHANGED, answer, CHANGED)
    reloading = asyncio.create_task(bench.reload())
    second = bench.slots[1].fake
    async with asyncio.timeout(DEADLINE_S):
        while not second.replaced:  # noqa: ASYNC110  # it has no event
            await asyncio.sleep(0)
    assert bench.asked() == [1, 2]  # capacity: the next one only when this one has ended
    second.end(0)
    assert [outcome["result"] for outcome in await reloading] == ["changed", "replaced", "changed"]


async def test_a_worker_that_starts_is_waited_for_since_it_may_be_loading_the_old_bundle() -> None:
    bench = Bench(CHANGED)
    bench.slots.append(FakeSlot(2, CHANGED, serves=False))
    bench.make()
    reloading = asyncio.create_task(bench.reload())
    for _ in range(20):
        await asyncio.sleep(0)
    assert bench.asked() == [1]
    bench.slots[1].fake.served.set()
    assert len(await reloading) == 2


async def test_a_first_worker_that_cannot_start_is_not_the_canary_where_another_serves() -> None:
    bench = Bench(CHANGED, CHANGED)
    first = bench.slots[0].fake
    first.served.clear()
    reloading = asyncio.create_task(bench.reload())
    for _ in range(20):
        await asyncio.sleep(0)
    assert bench.asked() == [2]
    first.end(1)
    assert await reloading == [{"worker": 2, **CHANGED}]


async def test_a_place_between_two_lives_is_left_out() -> None:
    bench = Bench(CHANGED, CHANGED)
    bench.slots[1].worker = None
    assert [outcome["worker"] for outcome in await bench.reload()] == [1]


async def test_a_second_reload_at_the_same_time_is_refused() -> None:
    bench = Bench(CHANGED)
    bench.slots[0].fake.served.clear()
    first = asyncio.create_task(bench.reload())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ReloadRunning):
        await bench.reload()
    bench.slots[0].fake.served.set()
    await first


def test_the_same_model_in_all_is_no_change() -> None:
    assert overall([{"result": "unchanged"}, {"result": "unchanged"}]) is ReloadResult.UNCHANGED
    assert overall([{"result": "unchanged"}, {"result": "replaced"}]) is ReloadResult.CHANGED
