"""How much of the machine the service gets to its callers: over HTTP against bare ONNX Runtime.

    .venv/bin/python -m deploy.benchmarks.bench_service

Rounds of the bare limit and of the service alternate in one run, so that a noisy machine disturbs
both; the ratio of each round counts, and the table has the median. Then an idle service is asked
one request at a time, each followed by the same pairs bare; and an open loop asks at rates up to
the capacity. The load client (a lean asyncio one) shares the cores with the service; its part of
the processor time is shown. The cache is off, and no pair comes twice. Pairs have 8 to 64 tokens,
36 on average; `--longest-tokens 32` makes that 20.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import statistics
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.bare_limit import BareLimit
from deploy.benchmarks.http_connection import Address, Connection
from deploy.benchmarks.load_client import (
    answered_per_s,
    closed_loop,
    latencies_ms,
    open_loop,
    percentile,
)
from deploy.benchmarks.mixed_pairs import LONGEST_TOKENS
from service.cpu import usable_cores
from service.scoring.bundle import open_bundle

TIMEOUT_MS = 30_000.0
LIMIT_REQUESTS = 50
IDLE_REQUESTS = 200
RATES = (0.25, 0.5, 0.75, 0.9)
WARM_UP_S = 2.0
HEADROOM = 1.5  # the machine may be faster later, and callers have requests under way
LEAD_S = 2.0  # until the loop is closed: the first answers are there, the queue has its length


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(
        __doc__, rounds=7, seconds=4.0, callers=32, ads=20, longest_tokens=LONGEST_TOKENS
    )
    traffic = functools.partial(
        bench_setup.traffic, options.bundle, longest_tokens=options.longest_tokens
    )
    alone = traffic(LIMIT_REQUESTS, options.ads)
    limit = BareLimit(open_bundle(options.bundle), alone)
    sizes = limit.search()
    # More requests than can be answered, so that none comes twice.
    seconds = WARM_UP_S + options.rounds * (LEAD_S + options.seconds)
    n_requests = int(HEADROOM * max(sizes.values()) * seconds / options.ads)
    requests = traffic(LIMIT_REQUESTS + n_requests, options.ads)[LIMIT_REQUESTS:]
    with bench_setup.service(options.bundle, ADREL_CACHE_BYTES="0") as address:
        busy = bench_setup.prepared(requests, address, TIMEOUT_MS)
        one_by_one = bench_setup.prepared(alone, address, TIMEOUT_MS)
        overhead = asyncio.run(_overhead(limit, address, one_by_one))
        saturation = _saturation(limit, address, busy, options)
        capacity = saturation["service_pairs_per_s"] / options.ads
        open_rates = [_open(address, busy, rate * capacity, options) for rate in RATES]
    results = {
        "limit_by_size": sizes,
        "saturation": saturation,
        "idle_overhead_ms": overhead,
        "open_loop": open_rates,
    }
    _print(results)
    bench_setup.save(options.out, "service", results, lambda figure: _draw(figure, results))


def _saturation(
    limit: BareLimit, address: Address, wire: Sequence[bytes], options: argparse.Namespace
) -> dict[str, Any]:
    """The limit and the closed loop in turns."""
    asyncio.run(closed_loop(address, wire[-100:], options.callers, WARM_UP_S))
    before = bench_setup.metrics(address)
    bare, served, share, latencies, failed, start = [], [], [], [], 0, 0
    for _ in range(options.rounds):
        bare.append(limit.pairs_per_s(options.seconds))
        cpu_s = time.process_time()
        exchanges = asyncio.run(
            closed_loop(address, wire[start:], options.callers, LEAD_S + options.seconds)
        )
        share.append((time.process_time() - cpu_s) / (LEAD_S + options.seconds) / usable_cores())
        start += len(exchanges)
        served.append(answered_per_s(exchanges, options.seconds, LEAD_S) * options.ads)
        latencies += latencies_ms(exchanges)
        failed += sum(exchange.status != 200 for exchange in exchanges)
    after = bench_setup.metrics(address)
    grown = {name: after[name] - before.get(name, 0.0) for name in after}
    padding = grown["adrel_padding_ratio_sum"] / grown["adrel_padding_ratio_count"]
    ratios = [one / other for one, other in zip(served, bare, strict=True)]
    latencies.sort()
    return {
        "limit_pairs_per_s": statistics.median(bare),
        "service_pairs_per_s": statistics.median(served),
        "ratio": statistics.median(ratios),
        "ratios": ratios,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "failed": failed,
        "padded_over_real_tokens": 1 / (1 - padding),
        "mean_batch_pairs": grown["adrel_batch_pairs_sum"] / grown["adrel_batch_pairs_count"],
        "client_share_of_cpu": statistics.median(share),
    }


async def _overhead(limit: BareLimit, address: Address, wire: Sequence[bytes]) -> dict[str, Any]:
    """One request at a time over HTTP, and the same pairs bare right after."""
    split = limit.request_split(len(wire))
    served, bare = [], []
    connection = Connection(address)
    with ThreadPoolExecutor(usable_cores()) as executor, contextlib.closing(connection):
        for number in range(IDLE_REQUESTS):
            index = number % len(wire)
            started_s = time.perf_counter()
            await connection.ask(wire[index])
            served.append((time.perf_counter() - started_s) * 1000)
            bare.append(limit.request_s(index, split, executor) * 1000)
    differences = sorted(one - other for one, other in zip(served, bare, strict=True))
    return {
        "bare_micro_batch": split,
        "bare_p50_ms": statistics.median(bare),
        "service_p50_ms": statistics.median(served),
        "service_p99_ms": percentile(sorted(served), 99),
        "difference_p50_ms": percentile(differences, 50),
        "difference_p99_ms": percentile(differences, 99),
    }


def _open(
    address: Address, wire: Sequence[bytes], rate_per_s: float, options: argparse.Namespace
) -> dict[str, Any]:
    seconds = max(6.0, options.seconds)
    exchanges = asyncio.run(open_loop(address, wire, rate_per_s, seconds, 512, seed=1))
    latencies = latencies_ms(exchanges)
    return {
        "requests_per_s": rate_per_s,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "failed": len(exchanges) - len(latencies),
    }


def _print(results: dict[str, Any]) -> None:
    by_size = ", ".join(f"{size}: {rate:.0f}" for size, rate in results["limit_by_size"].items())
    print(f"limit, pairs/s by micro-batch: {by_size}")
    figures, idle = results["saturation"], results["idle_overhead_ms"]
    print("| at saturation | |\n|---|---|")
    for name, value in figures.items():
        if not isinstance(value, list):
            print(f"| {name} | {value:.4g} |")
    print("\n| idle, one request at a time | |\n|---|---|")
    for name, value in idle.items():
        print(f"| {name} | {value:.3g} |")
    print("\n| open loop, requests/s | p50 ms | p99 ms | failed |\n|---|---|---|---|")
    for row in results["open_loop"]:
        print(
            f"| {row['requests_per_s']:.1f} | {row['p50_ms']:.1f} | {row['p99_ms']:.1f} "
            f"| {row['failed']} |"
        )


def _draw(figure: Any, results: dict[str, Any]) -> None:  # noqa: ANN401  # matplotlib's
    bars, lines = figure.subplots(1, 2)
    saturation = results["saturation"]
    bars.bar(
        ["bare limit", "service"],
        [saturation["limit_pairs_per_s"], saturation["service_pairs_per_s"]],
        color=["0.7", "tab:blue"],
    )
    bars.set(ylabel="pairs/s", title=f"saturation: {saturation['ratio']:.2f} of the limit")
    rates = [row["requests_per_s"] for row in results["open_loop"]]
    for name in ("p50_ms", "p99_ms"):
        lines.plot(rates, [row[name] for row in results["open_loop"]], "o-", label=name[:3])
    lines.set(xlabel="requests/s (open loop)", ylabel="ms", title="latency against load", ylim=0)
    lines.legend()


if __name__ == "__main__":
    main()
