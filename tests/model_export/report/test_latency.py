from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.report.latency import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    Latency,
    cpu_name,
    machine_facts,
    measure_latency,
)
from service.scoring.encoding import EncodedPair


class Machine:
    """A clock that only moves when a model runs, and the order of the runs."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.runs: list[tuple[str, int]] = []

    def clock(self) -> float:
        return self.now_s


class Slow:
    """Takes a fixed time and so much a pair."""

    def __init__(self, machine: Machine, name: str, a_pair_s: float) -> None:
        self.machine, self.name, self.a_pair_s = machine, name, a_pair_s

    def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
        self.machine.runs.append((self.name, len(batch)))
        self.machine.now_s += 0.001 + self.a_pair_s * len(batch)
        return np.zeros((len(batch), 1), dtype=np.float32)


def pairs(*lengths: int) -> list[EncodedPair]:
    return [EncodedPair(np.arange(n), np.zeros(n, np.int64), truncated=False) for n in lengths]


def measure(machine: Machine, a_pair_s: float, budget_s: float = 10.0) -> Latency | None:
    models = {
        "fp32": Slow(machine, "fp32", a_pair_s),
        "int8": Slow(machine, "int8", a_pair_s / 2),
    }
    return measure_latency(models, pairs(9, 5, 7), {}, clock=machine.clock, budget_s=budget_s)


def test_the_median_time_and_the_pairs_a_second_are_measured() -> None:
    latency = measure(Machine(), 0.001)
    assert latency is not None
    assert latency.pair_tokens == 7
    assert [row.batch_pairs for row in latency.rows] == [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 32, 32]
    assert [row.model for row in latency.rows[:2]] == ["fp32", "int8"]
    last = latency.rows[-1]
    assert last.median_ms == pytest.approx(1 + 16)
    assert last.pairs_per_s == pytest.approx(32 / 0.017)


def test_the_models_take_turns() -> None:
    machine = Machine()
    measure(machine, 0.001)
    ones = [name for name, n_pairs in machine.runs if n_pairs == 1][4:]  # after the warm-up
    assert ones[:8] == ["fp32", "int8", "int8", "fp32", "fp32", "int8", "int8", "fp32"]
    assert len(ones) == 2 * MAX_ROUNDS


@pytest.mark.parametrize("a_pair_s", [1e-5, 0.001, 0.01, 0.05, 0.2])
def test_slow_models_have_fewer_batch_sizes_and_not_more_time(a_pair_s: float) -> None:
    machine = Machine()
    latency = measure(machine, a_pair_s)
    assert latency is not None
    assert machine.now_s - 100 <= 10
    assert all(MIN_ROUNDS <= row.runs <= MAX_ROUNDS for row in latency.rows)


def test_the_largest_batches_of_a_small_model_fit_into_the_time() -> None:
    latency = measure(Machine(), 0.018)  # six layers of 384 on a slow core
    assert latency is not None
    assert latency.rows[-1].batch_pairs == 32


def test_a_model_that_does_not_fit_into_the_time_gives_nothing() -> None:
    machine = Machine()
    assert measure(machine, 10.0) is None
    assert len(machine.runs) == 4


class Coarse(Machine):
    """A clock that stands still."""

    def clock(self) -> float:
        return 100.0


def test_a_clock_that_stands_still_does_no_harm() -> None:
    latency = measure(Coarse(), 0.001)
    assert latency is not None
    assert all(np.isfinite(row.pairs_per_s) for row in latency.rows)


def test_the_processor_is_named_with_what_decides_its_speed() -> None:
    text = (
        "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz: fast\nflags\t\t: fpu avx2 avx512_vnni\n"
        "\nprocessor\t: 1\nmodel name\t: Another\nflags\t\t: fpu\n"
    )
    assert cpu_name(text) == "Some CPU @ 2 GHz: fast avx2 avx512_vnni"
    assert cpu_name("")


def test_the_facts_name_no_single_machine() -> None:
    assert set(machine_facts()) == {"cpu", "cores", "threads_per_run", "onnxruntime"}
