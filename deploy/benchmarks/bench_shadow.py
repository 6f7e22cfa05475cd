"""What auctions lose to a shadow: the same arrivals with and without one, in turns.

    .venv/bin/python -m deploy.benchmarks.bench_shadow

Each round starts the service twice, once with a shadow (the same bundle, so that it costs as much
as the model that serves) that is to score every request, and sends both the same Poisson arrivals.
The cache is off, and no pair comes twice within a round. What counts is the difference within a
round; the shadow's own series tell how much it did meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections.abc import Sequence
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.load_client import closed_loop, latencies_ms, open_loop, percentile

TIMEOUT_MS = 10_000.0
MAX_CONNECTIONS = 256
PERCENTS = (50, 90, 99)
WARM_UP_S = 1.0
OFF, ON = VARIANTS = ("off", "on")


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(
        __doc__, rounds=6, seconds=6.0, ads=10, rate_per_s=15.0, share=1.0
    )
    requests = bench_setup.traffic(options.bundle, 2000, options.ads)
    environ = {
        OFF: {"ADREL_CACHE_BYTES": "0"},
        ON: {
            "ADREL_CACHE_BYTES": "0",
            "ADREL_SHADOW_BUNDLE": str(options.bundle.resolve()),
            "ADREL_SHADOW_SHARE": str(options.share),
        },
    }
    pooled: dict[str, list[float]] = {variant: [] for variant in VARIANTS}
    added: dict[int, list[float]] = {percent: [] for percent in PERCENTS}
    shadow = {"pairs": 0.0, "seconds": 0.0, "dropped_pairs": 0.0}
    for number in range(options.rounds):
        found: dict[str, list[float]] = {}
        for variant in VARIANTS if number % 2 else reversed(VARIANTS):
            with bench_setup.service(options.bundle, **environ[variant]) as address:
                wire = bench_setup.prepared(requests, address, TIMEOUT_MS)
                asyncio.run(closed_loop(address, wire[-50:], 4, WARM_UP_S))
                found[variant] = _latencies_ms(address, wire, options, seed=number)
                if variant == ON:
                    _add(shadow, bench_setup.metrics(address))
            pooled[variant] += found[variant]
        for percent in PERCENTS:
            off_ms, on_ms = (percentile(found[variant], percent) for variant in VARIANTS)
            added[percent].append(on_ms - off_ms)
    results = {
        **{f"{variant}_ms": _percentiles(sorted(pooled[variant])) for variant in VARIANTS},
        "added_ms": {f"p{percent}": statistics.median(added[percent]) for percent in PERCENTS},
        "requests": {variant: len(pooled[variant]) for variant in VARIANTS},
        "shadow": {**shadow, "pair_ms": 1000 * shadow["seconds"] / max(1.0, shadow["pairs"])},
    }
    _print(results)
    bench_setup.save(options.out, "shadow", results, lambda figure: _draw(figure, pooled))


def _latencies_ms(
    address: tuple[str, int], wire: Sequence[bytes], options: argparse.Namespace, seed: int
) -> list[float]:
    return latencies_ms(
        asyncio.run(
            open_loop(address, wire, options.rate_per_s, options.seconds, MAX_CONNECTIONS, seed)
        )
    )


def _add(shadow: dict[str, float], metrics: dict[str, float]) -> None:
    shadow["pairs"] += metrics["adrel_shadow_pair_duration_seconds_count"]
    shadow["seconds"] += metrics["adrel_shadow_pair_duration_seconds_sum"]
    shadow["dropped_pairs"] += metrics['adrel_shadow_pairs_total{result="dropped"}']


def _percentiles(ordered: Sequence[float]) -> dict[str, float]:
    return {f"p{percent}": percentile(ordered, percent) for percent in PERCENTS}


def _print(results: dict[str, Any]) -> None:
    print("| ms | " + " | ".join(f"p{percent}" for percent in PERCENTS) + " |")
    print("|---|" + "---|" * len(PERCENTS))
    for name in ("off_ms", "on_ms", "added_ms"):
        figures = " | ".join(f"{value:.2f}" for value in results[name].values())
        print(f"| {name.removesuffix('_ms')} | {figures} |")
    print(results["requests"], results["shadow"])


def _draw(figure: Any, pooled: dict[str, list[float]]) -> None:  # noqa: ANN401  # matplotlib's
    axes = figure.subplots()
    for variant in VARIANTS:
        axes.ecdf(pooled[variant], label=f"shadow {variant}")
    axes.set(xlabel="latency in ms", ylabel="share of the auctions", xscale="log")
    axes.legend()


if __name__ == "__main__":
    main()
