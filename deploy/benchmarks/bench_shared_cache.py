"""What a cache shared by replicas costs and saves: shares of the pairs that redis knows already.

    .venv/bin/python -m deploy.benchmarks.bench_shared_cache

A service with redis and one without, in turns, on requests that neither has seen; both without a
cache of their own, so that each pair is asked for in redis or computed. Redis (`redis-server` must
be installed) listens on a Unix socket and shares the cores with the services and the load. It is
emptied before each round and filled with what a share of the pairs would get.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from deploy.benchmarks import bench_setup
from deploy.benchmarks.http_connection import Address
from deploy.benchmarks.load_client import answered_per_s, closed_loop, latencies_ms, percentile
from deploy.benchmarks.mixed_pairs import MixedRequest
from service.caching.score_cache import ScoreCache
from service.scoring.bundle import open_bundle
from service.scoring.golden_pairs import golden_logits
from service.shared_cache.address import RedisAddress
from service.shared_cache.commands import Command, answers_of
from service.shared_cache.connector import RedisConnector
from service.shared_cache.counts import LookupResult
from service.shared_cache.entry import EntryFormat, machine_of

TIMEOUT_MS = 30_000.0
SHARES = (0.0, 0.5, 0.95)
CATALOGUE_REQUESTS = 4000
SETS_AT_ONCE = 1000
START_S = 10.0


@dataclass(slots=True)
class Service:
    """One of the two, the requests as they go to it, and what came of them at one share."""

    address: Address
    wire: list[bytes]
    pairs_per_s: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    cpu_s: float = 0.0
    n_requests: int = 0

    def measure(self, options: argparse.Namespace) -> None:
        """Many callers, and then one, on requests that it has not seen."""
        before_s = self.cpu_now_s()
        many = asyncio.run(closed_loop(self.address, self.wire, options.callers, options.seconds))
        self.pairs_per_s.append(answered_per_s(many, options.seconds) * options.ads)
        fresh = self.wire[len(many) :]
        one = asyncio.run(closed_loop(self.address, fresh, 1, options.seconds))
        self.n_requests += len(many) + len(one)
        if len(many) + len(one) > len(self.wire):
            raise SystemExit("requests came twice: fewer --seconds")
        self.latencies_ms += latencies_ms(one)
        self.cpu_s += self.cpu_now_s() - before_s

    def cpu_now_s(self) -> float:
        """Processor time of its process so far."""
        return bench_setup.metrics(self.address)["process_cpu_seconds_total"]


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(__doc__, rounds=5, seconds=2.0, callers=8, ads=20)
    catalogue = bench_setup.traffic(options.bundle, CATALOGUE_REQUESTS, options.ads)
    with (
        redis() as socket,
        bench_setup.service(options.bundle, ADREL_CACHE_BYTES="0") as alone,
        bench_setup.service(
            options.bundle, ADREL_CACHE_BYTES="0", ADREL_REDIS_URL=f"unix://{socket}"
        ) as sharing,
    ):
        fill = Filler(options.bundle, catalogue, socket)
        wires = [
            bench_setup.prepared(catalogue, address, TIMEOUT_MS) for address in (alone, sharing)
        ]
        rows = [
            _measure(share, fill, Service(alone, wires[0]), Service(sharing, wires[1]), options)
            for share in SHARES
        ]
    columns = list(rows[0])
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in rows:
        print("| " + " | ".join(f"{value:.4g}" for value in row.values()) + " |")
    bench_setup.save(options.out, "shared_cache", {"shares": rows}, lambda f: _draw(f, rows))


@contextlib.contextmanager
def redis() -> Iterator[Path]:
    """A redis on a Unix socket, for as long as the block takes."""
    program = shutil.which("redis-server")
    if program is None:
        raise SystemExit("redis-server is not installed")
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder) / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--appendonly", "no"]
        with subprocess.Popen(  # noqa: S603  # as found on the path
            [program, *options], cwd=folder, stdout=subprocess.DEVNULL
        ) as process:
            try:
                stop_s = time.monotonic() + START_S
                while not socket.exists() and time.monotonic() < stop_s:
                    time.sleep(0.05)
                yield socket
            finally:
                process.terminate()


class Filler:
    """Puts into redis what a replica on this machine would have put there, but for the score."""

    def __init__(self, bundle: Path, catalogue: Sequence[MixedRequest], socket: Path) -> None:
        opened = open_bundle(bundle)
        version = opened.manifest.model.version
        self._entries = EntryFormat(version, machine_of(golden_logits(opened)), opened.n_logits)
        self._logits = np.zeros(opened.n_logits, np.float32)
        keys = ScoreCache(0, opened.n_logits, version).keys
        self._digests = [keys(request.query, request.ads) for request in catalogue]
        self._redis = RedisConnector(RedisAddress(path=str(socket)), None)

    def __call__(self, share: float) -> None:
        """Empty it, and let it know a share of each request's pairs."""
        asyncio.run(self._fill(share))

    async def _fill(self, share: float) -> None:
        commands: list[Command] = [(b"FLUSHALL",)]
        for digests in self._digests:
            for digest in digests[: round(share * len(digests))]:
                value = self._entries.pack(digest, self._logits, truncated=False)
                commands.append((b"SET", self._entries.key(digest), value))
        connection = await self._redis.connect(lambda _: None)
        for start in range(0, len(commands), SETS_AT_ONCE):
            await answers_of(connection, commands[start : start + SETS_AT_ONCE])
        connection.abort("filled")


def _measure(
    share: float, fill: Filler, alone: Service, sharing: Service, options: argparse.Namespace
) -> dict[str, float]:
    """Both services in turns, at one share of known pairs."""
    before = _looked_up(sharing.address)
    for _ in range(options.rounds):
        for service in (alone, sharing):
            fill(share)
            service.measure(options)
    after = _looked_up(sharing.address)
    count = {result: after[result] - before[result] for result in LookupResult}
    answered = count[LookupResult.HIT] + count[LookupResult.MISS]
    row = {
        "known to redis": share,
        "found": count[LookupResult.HIT] / sum(count.values()),
        "given up": 1 - answered / sum(count.values()),
        "pairs/s with / without": sum(sharing.pairs_per_s) / sum(alone.pairs_per_s),
    }
    for name, service in (("without", alone), ("with", sharing)):
        latencies = sorted(service.latencies_ms)
        row[f"pairs/s {name}"] = statistics.median(service.pairs_per_s)
        row[f"p50 ms {name}"] = percentile(latencies, 50)
        row[f"p99 ms {name}"] = percentile(latencies, 99)
        row[f"CPU ms a request {name}"] = 1000 * service.cpu_s / service.n_requests
    return row


def _looked_up(address: Address) -> dict[LookupResult, float]:
    """Pairs by what the shared cache gave for them."""
    samples = bench_setup.metrics(address)
    return {
        result: samples[f'adrel_shared_cache_requests_total{{result="{result.value}"}}']
        for result in LookupResult
    }


def _draw(figure: Any, rows: Sequence[dict[str, float]]) -> None:  # noqa: ANN401  # matplotlib's
    axes = figure.subplots()
    axes.bar(
        [f"{row['known to redis']:.0%}" for row in rows],
        [row["pairs/s with / without"] for row in rows],
    )
    axes.axhline(1, color="0.5")
    axes.set(
        xlabel="pairs that redis knows", ylabel="throughput, in multiples of no redis",
        title="A cache shared by replicas",
    )  # fmt: skip


if __name__ == "__main__":
    main()
