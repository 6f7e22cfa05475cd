"""How much of the machine `score-file` uses: its rows a second against bare ONNX Runtime's.

    .venv/bin/python -m deploy.benchmarks.bench_file

Rounds of the bare limit and of whole runs over a file alternate, on the same pairs, so that a noisy
machine disturbs both; the ratio of each round counts. A run has everything in it from the first
look at the input to the output under its name, but for the opening of the bundle. Processor time is
shown beside the clock's: where others use the cores too, it is the steadier of the two.
"""

from __future__ import annotations

import argparse
import io
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.bare_limit import BareLimit
from deploy.benchmarks.mixed_pairs import MixedRequest
from service.bulk.score_file import FileJob, score_file
from service.bulk.table import PartSize
from service.cpu import usable_cores
from service.scoring.bundle import Bundle, open_bundle

ADS = 20
LIMIT_BYTES = 1_048_576


def main() -> None:
    """Measure, print, save."""
    options = bench_setup.arguments(__doc__, rounds=5, seconds=8.0, pairs=20_000)
    requests = bench_setup.traffic(options.bundle, options.pairs // ADS, ADS)
    bundle = open_bundle(options.bundle)
    limit = BareLimit(bundle, requests)
    limit.search()
    with tempfile.TemporaryDirectory() as folder:
        path = _written(Path(folder), requests)
        results = _rounds(limit, bundle, path, options)
    print("| | bare limit | score-file | ratio |\n|---|---|---|---|")
    for name, facts in results.items():
        bare, scored, ratio = (facts[key] for key in ("bare", "file", "ratio"))
        print(f"| {name} | {bare:.4g} | {scored:.4g} | {ratio:.3f} |")
    bench_setup.save(options.out, "file", results, lambda figure: _draw(figure, results))


def _rounds(
    limit: BareLimit, bundle: Bundle, path: Path, options: argparse.Namespace
) -> dict[str, Any]:
    rates: dict[str, list[tuple[float, float]]] = {"pairs/s": [], "pairs/s of one core": []}
    for number in range(options.rounds):
        out = path.with_name(f"{number}.jsonl")
        job = FileJob(path, out, out.with_suffix(".rejects"), False, LIMIT_BYTES, PartSize())

        def run_bare() -> float:
            return float(limit.pairs_per_s(options.seconds) * options.seconds)

        def run_file(job: FileJob = job) -> float:
            return score_file(job, bundle, usable_cores(), io.StringIO()).record.scored

        bare, scored = _measured(run_bare), _measured(run_file)
        for name, one, other in zip(rates, bare, scored, strict=True):
            rates[name].append((one, other))
    return {
        name: {
            "bare": statistics.median(one for one, _ in pairs),
            "file": statistics.median(other for _, other in pairs),
            "ratio": statistics.median(other / one for one, other in pairs),
            "ratios": [other / one for one, other in pairs],
        }
        for name, pairs in rates.items()
    }


def _measured(run: Callable[[], float]) -> tuple[float, float]:
    """Pairs per second, and per second of processor time."""
    started_s, started_cpu_s = time.perf_counter(), time.process_time()
    n_pairs = run()
    return (
        n_pairs / (time.perf_counter() - started_s),
        n_pairs / (time.process_time() - started_cpu_s),
    )


def _written(folder: Path, requests: Sequence[MixedRequest]) -> Path:
    """The pairs of all requests, in random company as they come."""
    path = folder / "pairs.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number, request in enumerate(requests):
            for ad in request.ads:
                row = {"query": request.query, "title": ad, "request": number}
                file.write(f"{json.dumps(row)}\n")
    return path


def _draw(figure: Any, results: dict[str, Any]) -> None:  # noqa: ANN401  # matplotlib's
    rates = results["pairs/s"]
    axes = figure.subplots()
    axes.bar(
        ["bare limit", "score-file"], [rates["bare"], rates["file"]], color=["0.7", "tab:blue"]
    )
    axes.set(ylabel="pairs/s", title=f"{rates['ratio']:.2f} of the limit")


if __name__ == "__main__":
    main()
