"""Does anything grow, slow down or fail over time?

    .venv/bin/python -m deploy.benchmarks.bench_soak --minutes 20

Window after window of new traffic at saturation: most of it pairs that were never asked for, with
words that were never seen, some asked for before, some refused for what is wrong with them, some
by callers that hang up. After each window the service says how much memory it holds. Flat means
that the median of the last quarter is no more than `ALLOWED_GROWTH` over that of the second; the
first quarter is left to what fills up once, such as the caches.
"""

from __future__ import annotations

import asyncio
import collections
import random
import statistics
import sys
from collections.abc import Sequence
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.http_connection import Address, Connection
from deploy.benchmarks.load_client import Exchange, closed_loop, latencies_ms, percentile, prepare
from deploy.benchmarks.mixed_pairs import MixedRequest

ALLOWED_GROWTH = 0.02
REQUESTS_PER_S = 60  # prepared; where a machine is faster, they come again, from its cache
REPEATED_SHARE = 0.2
WRONG_SHARE = 0.02
HANG_UPS = 20
TIMEOUT_MS = 30_000.0
MIB = 2**20


def main() -> None:
    """Measure, print, save; exit code 1 where memory grew or an answer was not what it should."""
    options = bench_setup.arguments(__doc__, minutes=20.0, window_s=30.0, callers=16, ads=20)
    n_requests = round(REQUESTS_PER_S * options.window_s)
    n_windows = max(4, round(60 * options.minutes / options.window_s))
    rows: list[dict[str, Any]] = []
    print("| minute | resident MiB | open files | p50 ms | p99 ms | answers |")
    print("|---|---|---|---|---|---|")
    with bench_setup.service(options.bundle) as address:
        for window in range(n_windows):
            fresh = bench_setup.traffic(options.bundle, n_requests, options.ads, seed=window)
            wire, wrong = _window(fresh, address, random.Random(window))  # noqa: S311  # repeatable
            asyncio.run(_hang_up(address, wire[:HANG_UPS]))
            exchanges = asyncio.run(closed_loop(address, wire, options.callers, options.window_s))
            row = judge(exchanges, wrong) | _held(address)
            rows.append({"minute": (window + 1) * options.window_s / 60, **row})
            _print(rows[-1])
    growth = growth_of([row["resident_bytes"] for row in rows])
    surprises = sum(row["surprises"] for row in rows)
    print(f"growth {growth:+.1%} (allowed {ALLOWED_GROWTH:.0%}), unexpected answers {surprises}")
    results = {"growth": growth, "unexpected_answers": surprises, "windows": rows}
    bench_setup.save(options.out, "soak", results, lambda figure: _draw(figure, rows))
    sys.exit(growth > ALLOWED_GROWTH or surprises > 0)


def growth_of(resident_bytes: Sequence[float]) -> float:
    """The last quarter's median over the second quarter's, less 1."""
    quarter = len(resident_bytes) // 4
    early = statistics.median(resident_bytes[quarter : 2 * quarter])
    return statistics.median(resident_bytes[-quarter:]) / early - 1


def judge(exchanges: Sequence[Exchange], wrong: frozenset[int]) -> dict[str, Any]:
    """What became of one window's requests.

    Args:
        exchanges: All of it.
        wrong: Indices of the requests that must be refused with 422. All others must be answered,
            or refused for want of room, as on a machine that other programs keep busy.
    """
    expected = {True: (422,), False: (200, 429)}
    surprises = [one for one in exchanges if one.status not in expected[one.index in wrong]]
    ordered = latencies_ms(exchanges)
    return {
        "outcomes": dict(collections.Counter(str(one.status) for one in exchanges)),
        "surprises": len(surprises),
        "p50_ms": percentile(ordered, 50),
        "p99_ms": percentile(ordered, 99),
    }


def _window(
    fresh: Sequence[MixedRequest], address: Address, rng: random.Random
) -> tuple[list[bytes], frozenset[int]]:
    """Requests with a word of their own, or asked for twice, or wrong; and which are wrong."""
    bodies: list[bytes] = []
    wrong = set()
    for request in fresh:
        if bodies and rng.random() < REPEATED_SHARE:
            again = rng.randrange(len(bodies))
            if again not in wrong:
                bodies.append(bodies[again])
        word = f"{rng.getrandbits(48):x}"
        ads = [f"{text} {word}" for text in request.ads]
        body = bench_setup.body(MixedRequest(f"{request.query} {word}", ads), TIMEOUT_MS)
        if rng.random() < WRONG_SHARE:
            wrong.add(len(bodies))
            body = body.replace(b'"query"', b'"kwery"')
        bodies.append(body)
    return [prepare(*address, bench_setup.ROUTE, body) for body in bodies], frozenset(wrong)


async def _hang_up(address: Address, wire: Sequence[bytes]) -> None:
    """Ask, and be gone before there can be an answer."""
    for request in wire:
        connection = Connection(address)
        asking = asyncio.ensure_future(connection.ask(request))
        await asyncio.sleep(0.005)
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        connection.close()


def _held(address: Address) -> dict[str, float]:
    samples = bench_setup.metrics(address)
    return {
        "resident_bytes": samples["process_resident_memory_bytes"],
        "open_files": samples["process_open_fds"],
    }


def _print(row: dict[str, Any]) -> None:
    outcomes = ", ".join(f"{status}: {n}" for status, n in sorted(row["outcomes"].items()))
    print(
        f"| {row['minute']:.1f} | {row['resident_bytes'] / MIB:.1f} | {row['open_files']:.0f} "
        f"| {row['p50_ms']:.0f} | {row['p99_ms']:.0f} | {outcomes} |",
        flush=True,
    )


def _draw(figure: Any, rows: Sequence[dict[str, Any]]) -> None:  # noqa: ANN401  # matplotlib's
    memory, latency = figure.subplots(1, 2)
    minutes = [row["minute"] for row in rows]
    memory.plot(minutes, [row["resident_bytes"] / MIB for row in rows])
    memory.set(xlabel="minutes", ylabel="resident memory, MiB", ylim=0)
    latency.plot(minutes, [row["p50_ms"] for row in rows], label="p50")
    latency.plot(minutes, [row["p99_ms"] for row in rows], label="p99")
    latency.set(xlabel="minutes", ylabel="ms at saturation", ylim=0)
    latency.legend()


if __name__ == "__main__":
    main()
