"""Several worker processes against one process with as many inference threads.

    .venv/bin/python -m deploy.benchmarks.bench_workers

Both services run all the time, and are asked in turns: a round of one, a round of the other. What
counts is the ratio of each pair of rounds; the table has the median. `uncached` is traffic in which
no pair comes twice, `cached` the same few requests over and over, where the model has nothing to do
and the event loop is the limit. The load client shares the cores with the service. Processor time
is that of all the service's processes, for each answer.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.http_connection import Address
from deploy.benchmarks.load_client import answered_per_s, closed_loop, latencies_ms, percentile
from service.cpu import usable_cores

TIMEOUT_MS = 30_000.0
WARM_UP_S = 2.0
LEAD_S = 0.5  # until the loop is closed: the first answers are there
HOT_REQUESTS = 50
CPU = "process_cpu_seconds_total"
TRAFFICS = ("uncached", "cached")
KINDS = ("one process", "workers")


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(
        __doc__, rounds=5, seconds=4.0, callers=16, ads=20, workers=2, threads=usable_cores()
    )
    results = {traffic: _measure(traffic, options) for traffic in TRAFFICS}
    _print(results, options)
    bench_setup.save(options.out, "workers", results, lambda figure: _draw(figure, results))


def _measure(traffic: str, options: argparse.Namespace) -> dict[str, Any]:
    """Rounds of both services in turns."""
    cache = {"ADREL_CACHE_BYTES": "0"} if traffic == "uncached" else {}
    several = {**cache, "ADREL_WORKERS": str(options.workers)}
    one = {**cache, "ADREL_INFERENCE_THREADS": str(options.threads)}
    n_requests = HOT_REQUESTS if traffic == "cached" else 6_000
    requests = bench_setup.traffic(options.bundle, n_requests, options.ads)
    with (
        bench_setup.service(options.bundle, **one) as alone,
        bench_setup.service(options.bundle, **several) as together,
    ):
        services = dict(zip(KINDS, (alone, together), strict=True))
        wire = {
            kind: bench_setup.prepared(requests, address, TIMEOUT_MS)
            for kind, address in services.items()
        }
        for kind, address in services.items():
            asyncio.run(closed_loop(address, wire[kind], options.callers, WARM_UP_S))
        rounds = [
            {kind: _round(address, wire[kind], options) for kind, address in services.items()}
            for _ in range(options.rounds)
        ]
    return _summary(rounds)


def _round(
    address: Address, wire: Sequence[bytes], options: argparse.Namespace
) -> dict[str, float]:
    before_s = bench_setup.metrics(address)[CPU]
    exchanges = asyncio.run(closed_loop(address, wire, options.callers, LEAD_S + options.seconds))
    cpu_s = bench_setup.metrics(address)[CPU] - before_s
    latencies = latencies_ms(exchanges)
    return {
        "pairs_per_s": answered_per_s(exchanges, options.seconds, LEAD_S) * options.ads,
        "p50_ms": percentile(latencies, 50),
        "p99_ms": percentile(latencies, 99),
        "cpu_ms_per_request": 1000 * cpu_s / max(1, len(latencies)),
        "failed": len(exchanges) - len(latencies),
    }


def _summary(rounds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, Any]:
    """Medians of each kind, and of the ratios of the rounds."""
    one, several = KINDS
    names = tuple(rounds[0][one])
    medians = {
        kind: {name: statistics.median(each[kind][name] for each in rounds) for name in names}
        for kind in KINDS
    }
    ratios = {
        name: statistics.median(_ratio(each[several][name], each[one][name]) for each in rounds)
        for name in names
        if name != "failed"
    }
    return {**medians, "ratios": ratios, "rounds": list(rounds)}


def _ratio(this: float, that: float) -> float:
    """Not a number where a round had no answer at all: the machine was another's."""
    return this / that if that else math.nan


def _print(results: Mapping[str, Any], options: argparse.Namespace) -> None:
    one, several = KINDS
    print(f"{options.workers} workers against one process of {options.threads} threads\n")
    print(f"| traffic | | {one} | {several} | ratio |\n|---|---|---|---|---|")
    for traffic, figures in results.items():
        for name, ratio in figures["ratios"].items():
            print(
                f"| {traffic} | {name} | {figures[one][name]:.4g} | {figures[several][name]:.4g} "
                f"| {ratio:.2f} |"
            )


def _draw(figure: Any, results: Mapping[str, Any]) -> None:  # noqa: ANN401  # matplotlib's
    for axes, (traffic, figures) in zip(figure.subplots(1, 2), results.items(), strict=True):
        axes.bar(
            KINDS,
            [figures[kind]["pairs_per_s"] for kind in KINDS],
            color=["0.7", "tab:blue"],
        )
        axes.set(ylabel="pairs/s", title=f"{traffic}: {figures['ratios']['pairs_per_s']:.2f} x")


if __name__ == "__main__":
    main()
