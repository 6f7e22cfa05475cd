"""What a run costs on this machine, by batch size: a comparison of graphs, not a load test."""

from __future__ import annotations

import importlib.metadata
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from service.cpu import usable_cores
from service.scoring.bulk import LogitModel
from service.scoring.encoding import EncodedPair

BATCH_SIZES = (1, 2, 4, 8, 16, 32)  # pairs
BUDGET_S = 10.0
MIN_ROUNDS = 3  # a median that one disturbed run cannot move
MAX_ROUNDS = 25
SHARE = 0.1  # of the budget for one batch size; the large ones need more for `MIN_ROUNDS`

# Processor features that decide the speed of fp32 and of int8 products.
TELLING_FLAGS = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """One graph at one batch size."""

    model: str
    batch_pairs: int
    median_ms: float
    pairs_per_s: float
    runs: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Rows by batch size, then by model.

    Attributes:
        rows: Batch sizes that did not fit into the time are absent.
        pair_tokens: Length of every pair in every batch, so there is no padding.
        machine: What it was measured on.
    """

    rows: tuple[LatencyRow, ...]
    pair_tokens: int
    machine: Mapping[str, str | int]


def measure_latency(
    models: Mapping[str, LogitModel],
    pairs: Sequence[EncodedPair],
    machine: Mapping[str, str | int],
    *,
    clock: Callable[[], float] = time.perf_counter,
    budget_s: float = BUDGET_S,
    batch_sizes: Sequence[int] = BATCH_SIZES,
) -> Latency | None:
    """Time each model on batches of the pair of median length, one run at a time.

    The models take turns, so that a disturbance of the machine meets all of them.

    Args:
        models: What to compare, by the name to show.
        pairs: Any number; only their median length matters.
        machine: As of `machine_facts`, stored with the figures.
        clock: Monotonic seconds.
        budget_s: Batch sizes whose runs would end later, by the time that smaller ones took, are
            left out; slow models have fewer of them and fewer runs of each.
        batch_sizes: Pairs in a batch, ascending.

    Returns:
        The medians; None when not even the smallest batch fits into the time.
    """
    typical = sorted(pairs, key=lambda pair: pair.length_tokens)[len(pairs) // 2]
    end_s = clock() + budget_s
    for model in models.values():  # the first run sets up the runtime's memory: not counted
        model.logits([typical])
    start_s = clock()
    for model in models.values():
        model.logits([typical])
    round_s, measured_pairs = clock() - start_s, 1  # of one run of every model
    rows: list[LatencyRow] = []
    for size in batch_sizes:
        now_s = clock()
        if now_s + MIN_ROUNDS * round_s * size / measured_pairs > end_s:
            break
        share_end_s = min(now_s + budget_s * SHARE, end_s)
        times_s = _take_turns(models, [typical] * size, clock, share_end_s, end_s)
        medians_s = {name: statistics.median(values) for name, values in times_s.items()}
        round_s, measured_pairs = sum(medians_s.values()), size
        rows.extend(
            LatencyRow(name, size, 1e3 * median_s, size / median_s, len(times_s[name]))
            for name, median_s in medians_s.items()
        )
    return Latency(tuple(rows), typical.length_tokens, dict(machine)) if rows else None


def _take_turns(
    models: Mapping[str, LogitModel],
    batch: Sequence[EncodedPair],
    clock: Callable[[], float],
    share_end_s: float,
    end_s: float,
) -> dict[str, list[float]]:
    """Seconds of each run: whole rounds, at least one, in turning order."""
    times_s: dict[str, list[float]] = {name: [] for name in models}
    for turn in range(MAX_ROUNDS):
        if turn and clock() >= (share_end_s if turn >= MIN_ROUNDS else end_s):
            break
        for name in list(models)[:: 1 if turn % 2 == 0 else -1]:
            start_s = clock()
            models[name].logits(batch)
            times_s[name].append(max(clock() - start_s, 1e-9))  # a coarse clock may stand still
    return times_s


def machine_facts() -> dict[str, str | int]:
    """Processor, cores and versions; nothing that identifies one machine."""
    try:
        cpu = cpu_name(Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        cpu = ""
    return {
        "cpu": cpu or platform.machine(),
        "cores": usable_cores(),
        "threads_per_run": 1,
        "onnxruntime": importlib.metadata.version("onnxruntime"),
    }


def cpu_name(cpuinfo: str) -> str:
    """The processor's own name and its telling features, from the text of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in cpuinfo.splitlines():
        name, _, value = line.partition(":")
        fields.setdefault(name.strip(), value.strip())  # of the first processor
    flags = fields.get("flags", fields.get("Features", "")).split()
    known = [flag for flag in TELLING_FLAGS if flag in flags]
    return " ".join([fields.get("model name", platform.machine()), *known])
