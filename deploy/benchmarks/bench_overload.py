"""What is on time when more is asked than the machine can do.

    .venv/bin/python -m deploy.benchmarks.bench_overload

First the capacity by a closed loop, then Poisson arrivals at multiples of it, each request with a
timeout. An answer is good when every ad has a score and it was there at its deadline by the
caller's clock, which starts when the request was due. What was admitted and came later than the
deadline and `LATE_MS` is late. The cache is off, and no pair comes twice.
"""

from __future__ import annotations

import asyncio
import collections
import json
from collections.abc import Sequence
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.load_client import (
    Exchange,
    answered_per_s,
    closed_loop,
    latencies_ms,
    open_loop,
    percentile,
)

LOADS = (0.5, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0)
LATE_MS = 2.0
CAPACITY_S = 6.0
MAX_CONNECTIONS = 1024


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(__doc__, seconds=10.0, timeout_ms=200.0, ads=20, callers=32)
    requests = bench_setup.traffic(options.bundle, 4000, options.ads)
    with bench_setup.service(options.bundle, ADREL_CACHE_BYTES="0") as address:
        patient = bench_setup.prepared(requests, address, 30_000)
        asyncio.run(closed_loop(address, patient[-200:], options.callers, 2.0))
        closed = asyncio.run(closed_loop(address, patient, options.callers, CAPACITY_S))
        capacity = answered_per_s(closed, CAPACITY_S - 2, lead_s=2)
        wire = bench_setup.prepared(requests, address, options.timeout_ms)
        rows = []
        for load in LOADS:
            exchanges = asyncio.run(
                open_loop(address, wire, load * capacity, options.seconds, MAX_CONNECTIONS, seed=1)
            )
            rows.append({"load": load, **judge(exchanges, options.timeout_ms, options.seconds)})
            wire = wire[len(exchanges) :] + wire[: len(exchanges)]
    best = max(row["good_per_s"] for row in rows)
    for row in rows:
        row["share_of_best"] = row["good_per_s"] / best
    results = {"capacity_requests_per_s": capacity, "timeout_ms": options.timeout_ms, "rows": rows}
    _print(results)
    bench_setup.save(options.out, "overload", results, lambda figure: _draw(figure, results))


def judge(exchanges: Sequence[Exchange], timeout_ms: float, seconds: float) -> dict[str, Any]:
    """What became of the requests of one load."""
    kinds: collections.Counter[str] = collections.Counter()
    late = 0
    for exchange in exchanges:
        if exchange.status == 200:
            scores = json.loads(exchange.body)["scores"]
            complete = all(ad["score"] is not None for ad in scores)
            in_time = exchange.latency_ms <= timeout_ms
            kinds["good" if complete and in_time else "partial" if in_time else "late"] += 1
        else:
            kinds[str(exchange.status)] += 1
        admitted = exchange.status in (200, 504)
        late += admitted and exchange.latency_ms > timeout_ms + LATE_MS
    n_admitted = sum(kinds[kind] for kind in ("good", "partial", "late", "504"))
    return {
        "requests": len(exchanges),
        "outcomes": dict(sorted(kinds.items())),
        "good_per_s": kinds["good"] / seconds,
        "late_share_of_admitted": late / n_admitted if n_admitted else 0.0,
        "p99_ms": percentile(latencies_ms(exchanges), 99),
    }


def _print(results: dict[str, Any]) -> None:
    capacity, timeout_ms = results["capacity_requests_per_s"], results["timeout_ms"]
    print(f"capacity {capacity:.1f} requests/s (closed loop), timeout {timeout_ms:g} ms")
    print("| load | good/s | of the best | late of admitted | p99 ms | outcomes |")
    print("|---|---|---|---|---|---|")
    for row in results["rows"]:
        outcomes = ", ".join(f"{kind} {n}" for kind, n in row["outcomes"].items())
        print(
            f"| {row['load']:.2f} | {row['good_per_s']:.1f} | {row['share_of_best']:.3f} "
            f"| {row['late_share_of_admitted']:.4f} | {row['p99_ms']:.0f} | {outcomes} |"
        )


def _draw(figure: Any, results: dict[str, Any]) -> None:  # noqa: ANN401  # matplotlib's
    axes = figure.subplots()
    rows, capacity = results["rows"], results["capacity_requests_per_s"]
    loads = [row["load"] for row in rows]
    axes.plot(loads, [min(load, 1.0) * capacity for load in loads], "--", color="0.6",
              label="what the machine can do")  # fmt: skip
    axes.plot(loads, [row["good_per_s"] for row in rows], "o-", label="complete and in time")
    axes.set(xlabel="asked for, in multiples of the capacity", ylabel="requests/s", ylim=0)
    axes.legend()


if __name__ == "__main__":
    main()
