"""What a call through our own clients costs beside the leanest one that is possible.

    .venv/bin/python -m deploy.benchmarks.bench_client

An idle service is asked for the same ads by each caller in turn, one request at a time: by the
load client, which only sends bytes made beforehand and looks for the end of the answer, and by
`AdrelClient` and `AsyncAdrelClient`, which make the request and check the answer. Once the service
answers from its cache, where nearly all of the time is the way there and back, and once it computes
every pair. Each round's difference from the load client counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.http_connection import Address, Connection
from deploy.benchmarks.load_client import percentile
from deploy.benchmarks.mixed_pairs import MixedRequest
from service.client import Ad, AdrelClient, AsyncAdrelClient

TIMEOUT_MS = 30_000.0
LEAN, BLOCKING, ASYNCHRONOUS = CALLERS = ("load client", "AdrelClient", "AsyncAdrelClient")
N_REQUESTS = 50
WARM_UP_ROUNDS = 20

Ask = Callable[[int], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class CallCost:
    """What the calls of one caller took.

    Attributes:
        p50_ms: Latency.
        p99_ms: Latency.
        over_lean_p50_ms: Median of the differences from the load client in the same round.
        cpu_ms: Processor time of the calling process, mean of a call.
    """

    p50_ms: float
    p99_ms: float
    over_lean_p50_ms: float
    cpu_ms: float


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(__doc__, rounds=400, ads=20)
    requests = bench_setup.traffic(options.bundle, N_REQUESTS, options.ads)
    results = {}
    for answers, environ in (("cached", {}), ("computed", {"ADREL_CACHE_BYTES": "0"})):
        with bench_setup.service(options.bundle, **environ) as address:
            costs = asyncio.run(measure(address, requests, options.rounds))
        results[answers] = {name: asdict(cost) for name, cost in costs.items()}
    _print(results)
    bench_setup.save(options.out, "client", results, lambda figure: _draw(figure, results))


async def measure(
    address: Address, requests: Sequence[MixedRequest], rounds: int
) -> dict[str, CallCost]:
    """Ask by each caller in turn, each round's first one being another.

    Args:
        address: Where an idle service is.
        requests: Asked over and over.
        rounds: Calls of each caller.

    Raises:
        RuntimeError: An answer without all scores.
    """
    prepared = bench_setup.prepared(requests, address, TIMEOUT_MS)
    ads = [[Ad(str(i), text=text) for i, text in enumerate(one.ads)] for one in requests]
    url = "http://{}:{}".format(*address)
    lean = Connection(address)

    async def ask_lean(index: int) -> None:
        status, _ = await lean.ask(prepared[index])
        _require(status == 200)

    async def ask_blocking(index: int) -> None:
        _require(blocking.score(requests[index].query, ads[index]).complete)

    async def ask_asynchronous(index: int) -> None:
        result = await asynchronous.score(requests[index].query, ads[index])
        _require(result.complete)

    with contextlib.closing(lean), AdrelClient(url, timeout_ms=TIMEOUT_MS) as blocking:
        async with AsyncAdrelClient(url, timeout_ms=TIMEOUT_MS) as asynchronous:
            asks = dict(zip(CALLERS, (ask_lean, ask_blocking, ask_asynchronous), strict=True))
            await _rounds(asks, len(requests), max(WARM_UP_ROUNDS, len(requests)))
            return _costs(*await _rounds(asks, len(requests), rounds))


async def _rounds(
    asks: Mapping[str, Ask], n_requests: int, rounds: int
) -> tuple[dict[str, list[float]], dict[str, float]]:
    """Milliseconds of each call by caller, and of the processor all calls together."""
    latencies: dict[str, list[float]] = {name: [] for name in asks}
    cpu_ms = dict.fromkeys(asks, 0.0)
    names = list(asks)
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            cpu_s, started_s = time.process_time(), time.perf_counter()
            await asks[name](number % n_requests)
            latencies[name].append((time.perf_counter() - started_s) * 1000)
            cpu_ms[name] += (time.process_time() - cpu_s) * 1000
    return latencies, cpu_ms


def _costs(latencies: dict[str, list[float]], cpu_ms: dict[str, float]) -> dict[str, CallCost]:
    costs = {}
    for name, taken in latencies.items():
        over = [one - lean for one, lean in zip(taken, latencies[LEAN], strict=True)]
        ordered = sorted(taken)
        costs[name] = CallCost(
            percentile(ordered, 50),
            percentile(ordered, 99),
            statistics.median(over),
            cpu_ms[name] / len(taken),
        )
    return costs


def _require(complete: bool) -> None:
    if not complete:
        raise RuntimeError("an answer without all scores: is something else asking the service?")


def _print(results: dict[str, dict[str, dict[str, float]]]) -> None:
    print("| answers | caller | p50 ms | p99 ms | over the load client, p50 ms | CPU ms a call |")
    print("|---|---|---|---|---|---|")
    for answers, costs in results.items():
        for name, cost in costs.items():
            print(f"| {answers} | {name} | " + " | ".join(f"{v:.3g}" for v in cost.values()) + " |")


def _draw(figure: Any, results: dict[str, dict[str, dict[str, float]]]) -> None:  # noqa: ANN401  # matplotlib's
    for axes, (answers, costs) in zip(figure.subplots(1, 2), results.items(), strict=True):
        axes.bar(list(costs), [cost["p50_ms"] for cost in costs.values()], color="tab:blue")
        axes.set(ylabel="ms, p50", title=answers)


if __name__ == "__main__":
    main()
