from __future__ import annotations

import pytest

from service.batching.batch import Batch
from service.batching.pair_job import PairJob
from service.batching.watchdog import (
    MOST_A_LOOK_S,
    PATIENCE,
    BatchWatchdog,
    ThreadUse,
    time_limit_s,
)
from tests.fakes import FakeModel, FakePair, generation

LEAST_S = 10.0


def batch(predicted_s: float = 0.01) -> Batch[FakePair]:
    job = PairJob(FakePair(10), generation(FakeModel()))
    return Batch([job], 10, started_s=0.0, predicted_s=predicted_s)


class Bench:
    """A watchdog that looks every tenth of a second."""

    def __init__(self) -> None:
        self.running: list[Batch[FakePair]] = []
        self.given_up: list[Batch[FakePair]] = []
        self.now_s = 100.0
        self.use: ThreadUse | None = None
        self.watchdog: BatchWatchdog[FakePair] = BatchWatchdog(
            lambda: self.running, self.give_up, LEAST_S, lambda _: self.use
        )

    def give_up(self, overdue: Batch[FakePair]) -> None:
        self.running = [one for one in self.running if one is not overdue]
        self.given_up.append(overdue)

    def watch(self, seconds: float, core_share: float | None = None) -> None:
        """Time passes; threads want a core all the time and get so much of one, or sleep."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.now_s += 0.1
            if core_share is not None:
                had_s = self.use.core_s if self.use is not None else 3.0
                self.use = ThreadUse(wants_core=True, core_s=had_s + 0.1 * core_share)
            self.watchdog.look(self.now_s)


def test_a_batch_is_given_up_once_when_its_time_is_over_and_not_before() -> None:
    bench = Bench()
    bench.running = [stuck := batch()]
    bench.watch(LEAST_S - 0.2)
    assert bench.given_up == []
    bench.watch(0.5)
    assert bench.given_up == [stuck]
    bench.watch(2 * LEAST_S)
    assert bench.given_up == [stuck]


def test_a_batch_that_is_foretold_to_be_long_has_a_multiple_of_that() -> None:
    assert time_limit_s(2.0, LEAST_S) == 2.0 * PATIENCE
    assert time_limit_s(0.001, LEAST_S) == LEAST_S
    bench = Bench()
    bench.running = [batch(predicted_s=2.0)]
    bench.watch(2.0 * PATIENCE - 1)
    assert bench.given_up == []
    bench.watch(2)
    assert len(bench.given_up) == 1


def test_one_batch_after_the_other_never_adds_up() -> None:
    bench = Bench()
    for _ in range(10):
        bench.running = [batch()]
        bench.watch(LEAST_S / 2)
    assert bench.given_up == []


def test_time_in_which_the_process_stood_still_is_not_held_against_a_batch() -> None:
    bench = Bench()
    bench.running = [batch()]
    bench.watch(1)
    bench.now_s += 3600
    bench.watch(LEAST_S - 1 - MOST_A_LOOK_S - 0.2)
    assert bench.given_up == []
    bench.watch(1.5)
    assert len(bench.given_up) == 1


def test_a_batch_that_waits_for_a_core_is_not_stuck_and_one_that_uses_it_up_is() -> None:
    bench = Bench()
    bench.running = [batch()]
    bench.running[0].thread_id = 7
    bench.watch(5 * LEAST_S, core_share=0.1)
    assert bench.given_up == []
    bench.watch(LEAST_S, core_share=1.0)
    assert len(bench.given_up) == 1


def test_a_batch_that_sleeps_has_had_its_time_whatever_it_has_had_of_a_core() -> None:
    bench = Bench()
    bench.running = [batch()]
    bench.running[0].thread_id = 7
    bench.use = ThreadUse(wants_core=False, core_s=3.0)
    bench.watch(LEAST_S + 0.3)
    assert len(bench.given_up) == 1


@pytest.mark.parametrize("n_stuck", [1, 2])
def test_only_the_stuck_are_given_up(n_stuck: int) -> None:
    bench = Bench()
    stuck = [batch() for _ in range(n_stuck)]
    for _ in range(30):
        bench.running = [*(one for one in stuck if one not in bench.given_up), batch()]
        bench.watch(0.5)
    assert bench.given_up == stuck
