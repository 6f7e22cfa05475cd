"""The limit: what ONNX Runtime gives on these pairs with nothing around it.

No HTTP, no queue, no tokenizing; every pair is known beforehand, so micro-batches of equal length
can be cut without padding. One-thread runs, as many at once as there are cores.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from deploy.benchmarks.mixed_pairs import MixedRequest
from service.cpu import usable_cores
from service.scoring.bundle import Bundle
from service.scoring.encoding import EncodedPair

SIZES = (1, 2, 4, 8, 16, 32)
SEARCH_S = 1.0
REQUEST_SPLITS = (4, 5, 7, 10, 20)


class BareLimit:
    """Measures one bundle on the pairs of some requests."""

    def __init__(self, bundle: Bundle, requests: Sequence[MixedRequest]) -> None:
        """Encode the pairs; nothing runs yet."""
        self._model = bundle.model
        self._cores = usable_cores()
        self._requests = [bundle.encoder.encode(request.query, request.ads) for request in requests]
        self._pairs = sorted(
            itertools.chain.from_iterable(self._requests), key=lambda pair: pair.length_tokens
        )
        self.size = 0

    def search(self) -> dict[int, float]:
        """Pairs per second by micro-batch size; the best is kept for `pairs_per_s`."""
        self.pairs_per_s(SEARCH_S, SIZES[-1])  # warm-up
        found = {size: self.pairs_per_s(SEARCH_S, size) for size in SIZES}
        self.size = max(found, key=lambda size: found[size])
        return found

    def pairs_per_s(self, seconds: float, size: int = 0) -> float:
        """Sorted by length, cut into micro-batches, over and over for about so many seconds."""
        batches = _cut(self._pairs, size or self.size)
        # The time of a batch depends on its length: an even sample, wherever the time ends.
        stride = 7 if len(batches) % 7 else 1
        order = itertools.cycle(batches[i * stride % len(batches)] for i in range(len(batches)))
        started_s = time.perf_counter()

        def work(_: int) -> int:
            n_pairs = 0
            while time.perf_counter() - started_s < seconds:
                batch = next(order)
                self._model.logits(batch)
                n_pairs += len(batch)
            return n_pairs

        with ThreadPoolExecutor(self._cores) as executor:
            n_pairs = sum(executor.map(work, range(self._cores)))
        return n_pairs / (time.perf_counter() - started_s)

    def request_split(self, n_requests: int) -> int:
        """The micro-batch size with which one request alone is done soonest."""
        with ThreadPoolExecutor(self._cores) as executor:
            medians = {
                split: statistics.median(
                    self.request_s(index, split, executor) for index in range(n_requests)
                )
                for split in REQUEST_SPLITS
            }
        return min(medians, key=lambda split: medians[split])

    def request_s(self, index: int, split: int, executor: ThreadPoolExecutor) -> float:
        """Seconds of one request's pairs, sorted by length and spread over the cores."""
        pairs = sorted(self._requests[index], key=lambda pair: -pair.length_tokens)
        started_s = time.perf_counter()
        list(executor.map(self._model.logits, _cut(pairs, split)))
        return time.perf_counter() - started_s


def _cut(pairs: Sequence[EncodedPair], size: int) -> list[list[EncodedPair]]:
    return [list(pairs[start : start + size]) for start in range(0, len(pairs), size)]
