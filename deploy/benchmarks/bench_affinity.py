"""What sending the same query to the same replica is worth: a Zipf trace, with the key and without.

    .venv/bin/python -m deploy.benchmarks.bench_affinity

Three services behind nginx as `deploy/nginx` configures it. The trace is asked once from empty
caches, first without `X-Affinity-Key`, which spreads the requests, then with it; and once of one
service alone with a cache as large as the three together, which no fleet can do better than. All
counts are the services' own. Needs nginx.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.bench_cache import CATALOGUE_REQUESTS, TIMEOUT_MS, zipf_trace
from deploy.benchmarks.http_connection import Address, Connection
from deploy.benchmarks.load_client import prepare
from deploy.benchmarks.mixed_pairs import MixedRequest
from deploy.nginx.loopback import proxying
from service.client.affinity import AFFINITY_HEADER, affinity_key

# Several services share these cores, and none of their requests may be refused.
SHARED = {
    "ADREL_INFERENCE_THREADS": "1",
    "ADREL_INFERENCE_GIVES_WAY": "false",
    "ADREL_MAX_QUEUE_MS": "600000",
}
RESULTS = ("hit", "joined", "miss")
COMPUTED = b'"status":"ok"'


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(
        __doc__, requests=8000, ads=20, callers=8, replicas=3, cache_bytes=33_554_432
    )
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        sys.exit("bench_affinity: no program nginx; it is in the package of that name")
    catalogue = bench_setup.traffic(options.bundle, CATALOGUE_REQUESTS, options.ads)
    trace = zipf_trace(catalogue, options.requests, options.ads)
    rows = {
        "spread over the replicas": _fleet(nginx, trace, options, with_key=False),
        "by the query": _fleet(nginx, trace, options, with_key=True),
        "one service, as much cache": _alone(trace, options),
    }
    print("| requests | hit share | of the second half | pairs computed | busiest ÷ mean "
          "| computed of a request: mean, p99 | s |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for name, row in rows.items():
        print(
            f"| {name} | {row['hit_share']:.3f} | {row['hit_share_later']:.3f} "
            f"| {row['computed_pairs']} | {row['busiest_over_mean']:.2f} "
            f"| {row['computed_of_a_request_mean']:.1f}, {row['computed_of_a_request_p99']} "
            f"| {row['seconds']:.0f} |"
        )
    bench_setup.save(options.out, "affinity", rows, lambda figure: _draw(figure, rows))


def _fleet(
    nginx: str, trace: Sequence[MixedRequest], options: argparse.Namespace, *, with_key: bool
) -> dict[str, float]:
    with contextlib.ExitStack() as stack:
        services = [
            stack.enter_context(_service(options, options.cache_bytes))
            for _ in range(options.replicas)
        ]
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [f"{host}:{port}" for host, port in services]
        port = stack.enter_context(proxying(nginx, folder, servers, {}))
        return _replay((bench_setup.HOST, port), services, trace, options, with_key)


def _alone(trace: Sequence[MixedRequest], options: argparse.Namespace) -> dict[str, float]:
    with _service(options, options.replicas * options.cache_bytes) as service:
        return _replay(service, [service], trace, options, with_key=False)


def _service(
    options: argparse.Namespace, cache_bytes: int
) -> contextlib.AbstractContextManager[Address]:
    return bench_setup.service(options.bundle, ADREL_CACHE_BYTES=str(cache_bytes), **SHARED)


def _replay(
    address: Address,
    services: Sequence[Address],
    trace: Sequence[MixedRequest],
    options: argparse.Namespace,
    with_key: bool,
) -> dict[str, float]:
    """Ask the whole trace in two halves; what the caches said of it."""
    wire = [_request(one, address, with_key) for one in trace]
    half = len(wire) // 2
    start = [_counts(service) for service in services]
    began_s = time.perf_counter()
    computed = asyncio.run(_ask_all(address, wire[:half], options.callers))
    middle = [_counts(service) for service in services]
    computed += asyncio.run(_ask_all(address, wire[half:], options.callers))
    end = [_counts(service) for service in services]
    misses = [after["miss"] - before["miss"] for after, before in zip(end, start, strict=True)]
    return {
        "hit_share": _hit_share(start, end),
        "hit_share_later": _hit_share(middle, end),
        "computed_pairs": int(sum(misses)),
        "busiest_over_mean": max(misses) / statistics.mean(misses),
        "computed_of_a_request_mean": statistics.mean(computed),
        "computed_of_a_request_p99": sorted(computed)[int(0.99 * len(computed))],
        "seconds": time.perf_counter() - began_s,
    }


def _request(request: MixedRequest, address: Address, with_key: bool) -> bytes:
    headers = [(AFFINITY_HEADER, affinity_key(request.query))] if with_key else []
    body = bench_setup.body(request, TIMEOUT_MS)
    return prepare(*address, bench_setup.ROUTE, body, headers)


async def _ask_all(address: Address, wire: Sequence[bytes], callers: int) -> list[int]:
    """Ask each request once; how many pairs of each were computed for it.

    Raises:
        RuntimeError: A request was not answered with 200: its pairs would be missing.
    """
    waiting = iter(wire)
    computed: list[int] = []

    async def call(mine: Iterator[bytes]) -> None:
        with contextlib.closing(Connection(address)) as connection:
            for request in mine:
                status, body = await connection.ask(request)
                if status != 200:
                    raise RuntimeError(f"answered with {status}: {body[:200]!r}")
                computed.append(body.count(COMPUTED))

    await asyncio.gather(*(call(waiting) for _ in range(callers)))
    return computed


def _counts(service: Address) -> dict[str, float]:
    metrics = bench_setup.metrics(service)
    return {
        result: metrics[f'adrel_cache_requests_total{{result="{result}"}}'] for result in RESULTS
    }


def _hit_share(before: Sequence[dict[str, float]], after: Sequence[dict[str, float]]) -> float:
    """Of all pairs that were looked up in between; those that were joined were not computed."""
    total = {
        result: sum(one[result] for one in after) - sum(one[result] for one in before)
        for result in RESULTS
    }
    return 1 - total["miss"] / sum(total.values())


def _draw(figure: Any, rows: dict[str, dict[str, float]]) -> None:  # noqa: ANN401  # matplotlib's
    axes = figure.subplots()
    axes.bar(list(rows), [row["hit_share_later"] for row in rows.values()])
    axes.set(ylabel="hit share, second half of the trace", ylim=(0, 1))


if __name__ == "__main__":
    main()
