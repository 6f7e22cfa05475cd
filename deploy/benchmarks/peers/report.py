"""The table and the file that a run leaves behind. Neither names this machine or its paths."""

from __future__ import annotations

import dataclasses
import datetime
import math
import platform
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from deploy.benchmarks.peers.measure import Figures
from service.cpu import usable_cores

RowName = tuple[str, str]  # server, setting


def median_figures(rounds: Sequence[Figures]) -> Figures:
    """Field by field; of failures and differences the worst."""
    return Figures(
        pairs_per_s=statistics.median(one.pairs_per_s for one in rounds),
        p50_ms=statistics.median(one.p50_ms for one in rounds),
        p99_ms=statistics.median(one.p99_ms for one in rounds),
        failed=max(one.failed for one in rounds),
        worst_score=max(one.worst_score for one in rounds),
        mean_score=max(one.mean_score for one in rounds),
    )


def table(results: Mapping[RowName, Sequence[Figures]]) -> str:
    """Markdown, fastest first; the ratio is to the fastest server, not to the limit."""
    rows = {name: median_figures(rounds) for name, rounds in results.items() if rounds}
    served = [one.pairs_per_s for (name, _), one in rows.items() if name != "limit"]
    best = max(served, default=math.nan)
    lines = [
        "| server | setting | pairs/s | ratio | p50 ms | p99 ms | failed | score off by | mean |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (name, setting), one in sorted(rows.items(), key=lambda row: -row[1].pairs_per_s):
        lines.append(
            f"| {name} | {setting} | {one.pairs_per_s:.0f} | {one.pairs_per_s / best:.2f} "
            f"| {one.p50_ms:.0f} | {one.p99_ms:.0f} | {one.failed} "
            f"| {one.worst_score:.3f} | {one.mean_score:.4f} |"
        )
    return "\n".join(lines)


def as_json(
    results: Mapping[RowName, Sequence[Figures]],
    reasons: Mapping[RowName, str],
    load: Mapping[str, float],
    versions: Mapping[str, Mapping[str, str]],
) -> dict[str, Any]:
    """All rounds of all rows, and what they were measured on."""
    return {
        "machine": {
            "cpu": _cpu_model(),
            "cores": usable_cores(),
            "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
            "python": platform.python_version(),
        },
        "load": dict(load),
        "versions": {name: dict(of_one) for name, of_one in versions.items()},
        "rows": [
            {
                "server": name,
                "setting": setting,
                "rounds": [_without_nan(dataclasses.asdict(one)) for one in rounds],
                "did_not_run": reasons.get((name, setting)),
            }
            for (name, setting), rounds in results.items()
        ],
    }


def _without_nan(figures: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in figures.items()}


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )


def draw(results: Mapping[RowName, Sequence[Figures]], file: Path) -> None:
    """The table as a picture: pairs per second of each server and setting."""
    import matplotlib  # noqa: PLC0415  # slow to load, and of no use before the end

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    rows = {name: median_figures(rounds) for name, rounds in results.items() if rounds}
    ordered = sorted(rows.items(), key=lambda row: row[1].pairs_per_s)
    figure = pyplot.figure(figsize=(9, 0.4 * len(ordered) + 1), layout="constrained")
    axes = figure.subplots()
    axes.barh(
        [" ".join(name) for name, _ in ordered],
        [one.pairs_per_s for _, one in ordered],
        color=["tab:blue" if name[0].startswith("adrel") else "0.7" for name, _ in ordered],
    )
    axes.set(xlabel="pairs/s")
    figure.savefig(file, dpi=120)
    pyplot.close(figure)
