"""Speed and batch spread of a bundle on this machine, with no HTTP in between.

Prints pairs per second for the ways in which pairs can be put into batches, side by side and
interleaved, so that a noisy machine disturbs all of them alike.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from model_export.parity import batch_spread
from model_export.reference_pairs import reference_pairs
from service.cpu import usable_cores
from service.scoring.bulk import MICRO_BATCH_PAIRS
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair

Batches = list[list[EncodedPair]]


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, default=Path("bundles/default"))
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    bundle = open_bundle(arguments.bundle)
    pairs = _pairs(bundle)
    cores = usable_cores()
    mean_tokens = statistics.mean(pair.length_tokens for pair in pairs)
    print(f"{bundle.manifest.model.name} {bundle.manifest.precision.recipe}")
    print(f"{len(pairs)} pairs, mean {mean_tokens:.0f} tokens, {cores} cores")
    print(f"batch spread: {batch_spread(bundle.model, pairs):g}")
    ways = {
        "one pair a batch": _cut(pairs, 1),
        f"{MICRO_BATCH_PAIRS} as they come": _cut(pairs, MICRO_BATCH_PAIRS),
        f"{MICRO_BATCH_PAIRS} of like length": _cut(_by_length(pairs), MICRO_BATCH_PAIRS),
        "32 as they come": _cut(pairs, 32),
        "32 of like length": _cut(_by_length(pairs), 32),
    }
    for name, pairs_per_s in _measure(bundle, ways, cores, arguments.rounds).items():
        print(f"{name:20} {pairs_per_s:7.0f} pairs/s")


def _pairs(bundle: Bundle) -> list[EncodedPair]:
    """The reference pairs without the awkward giants, in a fixed random order."""
    encoded = [bundle.encode(query, [ad])[0] for query, ad in reference_pairs()[10:]]
    random.Random(0).shuffle(encoded)  # noqa: S311  # a fixed order is wanted
    return encoded


def _by_length(pairs: Sequence[EncodedPair]) -> list[EncodedPair]:
    return sorted(pairs, key=lambda pair: pair.length_tokens)


def _cut(pairs: Sequence[EncodedPair], size: int) -> Batches:
    return [list(pairs[start : start + size]) for start in range(0, len(pairs), size)]


def _measure(bundle: Bundle, ways: dict[str, Batches], cores: int, rounds: int) -> dict[str, float]:
    """Median pairs per second of each way, one one-thread run per core."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    with ThreadPoolExecutor(cores) as executor:
        for batches in ways.values():
            _run(bundle, batches, executor)  # warm-up
        for _ in range(rounds):
            for name, batches in ways.items():
                seconds[name].append(_run(bundle, batches, executor))
    n_pairs = sum(len(batch) for batch in next(iter(ways.values())))
    return {name: n_pairs / statistics.median(values) for name, values in seconds.items()}


def _run(
    bundle: Bundle, batches: Batches, executor: ThreadPoolExecutor,
    now_s: Callable[[], float] = time.perf_counter,
) -> float:  # fmt: skip
    started_s = now_s()
    list(executor.map(bundle.model.logits, batches))
    return now_s() - started_s


if __name__ == "__main__":
    main()
