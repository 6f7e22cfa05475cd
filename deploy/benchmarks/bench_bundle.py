"""Speed and batch spread of bundles on this machine, with no HTTP in between.

Prints pairs per second for the ways in which pairs can be put into batches. Several bundles are
measured interleaved in one run, so that a noisy machine disturbs all of them alike:

    python deploy/benchmarks/bench_bundle.py --bundle bundles/default --bundle bundles/fp32
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from model_export.parity import batch_spread
from model_export.reference_pairs import reference_pairs
from service.cpu import usable_cores
from service.scoring.bulk import MICRO_BATCH_PAIRS
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair

Batches = list[list[EncodedPair]]

N_AWKWARD_PAIRS = 10  # the first reference pairs; no ad looks like these


def main() -> None:
    """Measure and print a table, one column per bundle."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bundle", type=Path, action="append", default=[])
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    bundles = [open_bundle(path) for path in arguments.bundle or [Path("bundles/default")]]
    pairs = _pairs(bundles[0])
    cores = usable_cores()
    mean_tokens = statistics.mean(pair.length_tokens for pair in pairs)
    print(f"{len(pairs)} pairs, mean {mean_tokens:.0f} tokens; {cores} one-thread runs at once")
    ways = {
        "one pair a batch": _cut(pairs, 1),
        f"{MICRO_BATCH_PAIRS} as they come": _cut(pairs, MICRO_BATCH_PAIRS),
        f"{MICRO_BATCH_PAIRS} of like length": _cut(_by_length(pairs), MICRO_BATCH_PAIRS),
        "32 as they come": _cut(pairs, 32),
        "32 of like length": _cut(_by_length(pairs), 32),
    }
    recipes = [bundle.manifest.precision.recipe for bundle in bundles]
    print(f"{'pairs/s':22}" + "".join(f"{recipe:>24}" for recipe in recipes))
    for name, batches in ways.items():
        figures = _measure(bundles, batches, cores, arguments.rounds)
        print(f"{name:22}" + "".join(f"{len(pairs) / seconds:24.0f}" for seconds in figures))
    spreads = [batch_spread(bundle.model, pairs) for bundle in bundles]
    print(f"{'batch spread, logit':22}" + "".join(f"{spread:24g}" for spread in spreads))


def _pairs(bundle: Bundle) -> list[EncodedPair]:
    """The reference pairs without the awkward giants, in a fixed random order."""
    encoded = [bundle.encode(query, [ad])[0] for query, ad in reference_pairs()[N_AWKWARD_PAIRS:]]
    random.Random(0).shuffle(encoded)  # noqa: S311  # a fixed order is wanted
    return encoded


def _by_length(pairs: Sequence[EncodedPair]) -> list[EncodedPair]:
    return sorted(pairs, key=lambda pair: pair.length_tokens)


def _cut(pairs: Sequence[EncodedPair], size: int) -> Batches:
    return [list(pairs[start : start + size]) for start in range(0, len(pairs), size)]


def _measure(bundles: Sequence[Bundle], batches: Batches, cores: int, rounds: int) -> list[float]:
    """Median seconds of each bundle for all batches."""
    seconds: list[list[float]] = [[] for _ in bundles]
    with ThreadPoolExecutor(cores) as executor:
        for bundle in bundles:
            _run(bundle, batches, executor)  # warm-up
        for _ in range(rounds):
            for index, bundle in enumerate(bundles):
                seconds[index].append(_run(bundle, batches, executor))
    return [statistics.median(values) for values in seconds]


def _run(
    bundle: Bundle,
    batches: Batches,
    executor: Executor,
    now_s: Callable[[], float] = time.perf_counter,
) -> float:
    started_s = now_s()
    list(executor.map(bundle.model.logits, batches))
    return now_s() - started_s


if __name__ == "__main__":
    main()
