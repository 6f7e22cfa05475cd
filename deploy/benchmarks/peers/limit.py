"""What the runtime alone gives: no HTTP, no tokenizing, every pair known beforehand.

A process of its own, so that it starts as clean as the servers. Prints the pairs per second of the
best size of micro-batch as JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tokenizers import Encoding, Tokenizer

from deploy.benchmarks.mixed_pairs import mixed_requests
from deploy.benchmarks.peers.plain_model import PlainModel
from service.cpu import usable_cores

MICRO_BATCH_SIZES = (4, 8, 16)
N_REQUESTS = 40
WARM_UP_S = 1.0


def main() -> None:
    """Measure each size for its share of the time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--ads", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    model = PlainModel(arguments.model, arguments.tokenizer, threads=1)
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    requests = mixed_requests(tokenizer, arguments.seed, N_REQUESTS, arguments.ads)
    pairs = [pair for request in requests for pair in model.encode(request.query, request.ads)]
    pairs.sort(key=lambda pair: len(pair.ids))
    _pairs_per_s(model, pairs, MICRO_BATCH_SIZES[0], WARM_UP_S)
    seconds = arguments.seconds / len(MICRO_BATCH_SIZES)
    figures = {size: _pairs_per_s(model, pairs, size, seconds) for size in MICRO_BATCH_SIZES}
    best = max(figures, key=lambda size: figures[size])
    print(json.dumps({"size": best, "pairs_per_s": figures[best]}))


def _pairs_per_s(model: PlainModel, pairs: Sequence[Encoding], size: int, seconds: float) -> float:
    """All pairs over and over, one one-thread run at once per core."""
    batches = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    random.Random(0).shuffle(batches)  # noqa: S311  # the last, partial turn is a fair sample
    endless = itertools.cycle(batches)
    started_s = time.perf_counter()

    def work(_: int) -> int:
        n_pairs = 0
        while time.perf_counter() - started_s < seconds:
            batch = next(endless)
            model.logits(batch)
            n_pairs += len(batch)
        return n_pairs

    cores = usable_cores()
    with ThreadPoolExecutor(cores) as executor:
        n_pairs = sum(executor.map(work, range(cores)))
    return n_pairs / (time.perf_counter() - started_s)


if __name__ == "__main__":
    main()
