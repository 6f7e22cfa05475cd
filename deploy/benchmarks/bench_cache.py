"""What the cache is worth: a Zipf trace with and without it, and requests that hit throughout.

    .venv/bin/python -m deploy.benchmarks.bench_cache

Queries and their ads are drawn by Zipf's law, as in search: a few are asked for all the time. The
miss rate is the service's own count over the measured time; without any other cost the throughput
would grow by its inverse.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
from collections.abc import Sequence
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.http_connection import Address
from deploy.benchmarks.load_client import answered_per_s, closed_loop
from deploy.benchmarks.mixed_pairs import MixedRequest
from deploy.loadtest.ad_traffic import ZipfSampler

TIMEOUT_MS = 30_000.0
CATALOGUE_REQUESTS = 3000
HIT_REQUESTS = 10
CACHE_BYTES = "33554432"


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(__doc__, rounds=5, seconds=4.0, callers=8, ads=20)
    catalogue = bench_setup.traffic(options.bundle, CATALOGUE_REQUESTS, options.ads)
    trace = zipf_trace(catalogue, 20_000, options.ads)
    with (
        bench_setup.service(options.bundle, ADREL_CACHE_BYTES="0") as without,
        bench_setup.service(options.bundle, ADREL_CACHE_BYTES=CACHE_BYTES) as cached,
    ):
        rows = _zipf(without, cached, trace, options)
        hits = bench_setup.prepared(catalogue[:HIT_REQUESTS], cached, TIMEOUT_MS)
        asyncio.run(closed_loop(cached, hits, 2, 1.0))
        rates = [_pairs_per_s(cached, hits, options) for _ in range(options.rounds)]
    results = {**rows, "all_hit_pairs_per_s": statistics.median(rates)}
    print("| cache | |\n|---|---|")
    for name, value in results.items():
        print(f"| {name} | {value:.4g} |")
    bench_setup.save(options.out, "cache", results, lambda figure: _draw(figure, results))


def zipf_trace(
    catalogue: Sequence[MixedRequest], n_requests: int, n_ads: int
) -> list[MixedRequest]:
    """Requests whose query, and each of whose ads for it, are drawn by Zipf's law."""
    rng = random.Random(2)  # noqa: S311  # the same trace in every run
    queries = ZipfSampler(catalogue)
    ads_of = {request.query: ZipfSampler(request.ads) for request in catalogue}
    trace = []
    for request in queries.draw(rng, n_requests):
        ads = dict.fromkeys(ads_of[request.query].draw(rng, 3 * n_ads))
        trace.append(MixedRequest(request.query, list(ads)[: n_ads // 2]))
    return trace


def _zipf(
    without: Address, cached: Address, trace: Sequence[MixedRequest], options: argparse.Namespace
) -> dict[str, float]:
    """Both services in turns on the same trace, and what the cache said of it."""
    plain_wire = bench_setup.prepared(trace, without, TIMEOUT_MS)
    cached_wire = bench_setup.prepared(trace, cached, TIMEOUT_MS)
    third = len(trace) // 3
    asyncio.run(closed_loop(without, plain_wire[:third], options.callers, 2.0))
    asyncio.run(closed_loop(cached, cached_wire[:third], options.callers, 6.0))
    before = bench_setup.metrics(cached)
    gains, start = [], third
    for _ in range(options.rounds):
        plain = asyncio.run(
            closed_loop(without, plain_wire[third:], options.callers, options.seconds)
        )
        fast = asyncio.run(
            closed_loop(cached, cached_wire[start:], options.callers, options.seconds)
        )
        start += len(fast)
        gains.append(len(fast) / len(plain))
    after = bench_setup.metrics(cached)
    count = {
        result: after[f'adrel_cache_requests_total{{result="{result}"}}']
        - before[f'adrel_cache_requests_total{{result="{result}"}}']
        for result in ("hit", "miss", "joined")
    }
    miss_rate = count["miss"] / sum(count.values())
    gain = statistics.median(gains)
    return {
        "miss_rate": miss_rate,
        "throughput_with_over_without": gain,
        "ideal": 1 / miss_rate,
        "share_of_ideal": gain * miss_rate,
    }


def _pairs_per_s(address: Address, wire: Sequence[bytes], options: argparse.Namespace) -> float:
    exchanges = asyncio.run(closed_loop(address, wire, 4, options.seconds))
    return answered_per_s(exchanges, options.seconds) * float(options.ads)


def _draw(figure: Any, results: dict[str, Any]) -> None:  # noqa: ANN401  # matplotlib's
    axes = figure.subplots()
    axes.bar(
        ["without", "with the cache", "1 / miss rate"],
        [1.0, results["throughput_with_over_without"], results["ideal"]],
        color=["0.7", "tab:blue", "0.85"],
    )
    axes.set(ylabel="throughput, in multiples of no cache", title="Zipf trace")


if __name__ == "__main__":
    main()
