"""Speed of several models on the same batches, in interleaved rounds.

A machine's pace drifts, so only what was measured side by side is compared: in each round every
model runs once, each round starts with another one, and a ratio is of two runs of one round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from service.scoring.bulk import MICRO_BATCH_PAIRS, LogitModel
from service.scoring.encoding import EncodedPair

Batch = list[EncodedPair]
Rounds = list[dict[str, float]]  # pairs per second by name


@dataclass(frozen=True, slots=True)
class Ratio:
    """Speeds of one model over those of another in the same rounds."""

    median: float
    lowest: float
    highest: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.lowest:.2f}-{self.highest:.2f})"


def micro_batches(pairs: Sequence[EncodedPair]) -> list[Batch]:
    """Batches of like length, as the service would make them of so many waiting pairs."""
    ordered = sorted(pairs, key=lambda pair: pair.length_tokens)
    size = MICRO_BATCH_PAIRS
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def even_sample(batches: Sequence[Batch], n_batches: int) -> list[Batch]:
    """At most so many of the batches, from all lengths alike; longest first.

    Longest first so that the last core to finish has a short batch left.
    """
    n_batches = max(1, min(n_batches, len(batches)))
    kept = [batches[index * len(batches) // n_batches] for index in range(n_batches)]
    return sorted(kept, key=lambda batch: -sum(pair.length_tokens for pair in batch))


def measure_rounds(
    models: Mapping[str, LogitModel],
    batches: Sequence[Batch],
    *,
    threads: int,
    n_rounds: int,
    seconds: float,
    report: Callable[[str], None] = lambda _: None,
    now_s: Callable[[], float] = time.perf_counter,
) -> Rounds:
    """Pairs per second of every model in every round.

    Args:
        models: By name.
        batches: What they run; of many, a sample that takes the slowest about `seconds`.
        threads: Batches that run at once.
        n_rounds: How many.
        seconds: Of one model in one round, about; the whole takes at most
            `seconds * len(models) * n_rounds` and a warm-up.
        report: Told of each round.
        now_s: The clock.
    """
    names = list(models)
    with ThreadPoolExecutor(threads) as executor:

        def pairs_per_s(name: str, sample: Sequence[Batch]) -> float:
            started_s = now_s()
            for _ in executor.map(models[name].logits, sample):
                pass
            return sum(len(batch) for batch in sample) / (now_s() - started_s)

        trial = even_sample(batches, 2 * threads)
        for name in names:
            pairs_per_s(name, trial)  # warm-up: the first runs allocate
        slowest = min(pairs_per_s(name, trial) for name in names)
        sample = even_sample(batches, int(slowest * seconds / MICRO_BATCH_PAIRS))
        rounds: Rounds = []
        for number, order in enumerate(rotations(names, n_rounds), start=1):
            speeds = {name: pairs_per_s(name, sample) for name in order}
            rounds.append({name: speeds[name] for name in names})
            report(f"round {number} of {n_rounds}")
    return rounds


def rotations(names: Sequence[str], n_rounds: int) -> Iterator[list[str]]:
    """All names in every round, each round starting with the next one."""
    for number in range(n_rounds):
        first = number % len(names)
        yield [*names[first:], *names[:first]]


def ratio(rounds: Rounds, name: str, to: str) -> Ratio:
    """Of one model to another, round by round."""
    ratios = [speeds[name] / speeds[to] for speeds in rounds]
    return Ratio(statistics.median(ratios), min(ratios), max(ratios))


def median_speed(rounds: Rounds, name: str) -> float:
    """Pairs per second."""
    return statistics.median(speeds[name] for speeds in rounds)
