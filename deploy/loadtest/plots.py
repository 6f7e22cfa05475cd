"""The figures of the report: each takes its part of `report.json` and gives an `<svg>`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import matplotlib as mpl
from matplotlib.axes import Axes

from deploy.loadtest.load_figures import PERCENTILES
from model_export.report.svg import FIRST, INK, QUIET, SECOND, svg_of

Part = Mapping[str, Any]

# From the ground up. Hatches tell apart what has one colour, and all of it without colours.
STACK = (
    ("good", FIRST, 0.55, ""),
    ("late", SECOND, 0.25, "////"),
    ("deadline", SECOND, 0.55, ""),
    ("refused", QUIET, 0.45, ""),
    ("failed", INK, 0.9, "xxxx"),
)
PERCENTILE_LOOKS = ((FIRST, "o", "-"), (INK, "^", "--"), (SECOND, "s", ":"))


def latency_by_load(steps: Sequence[Part], settings: Part) -> str:
    """Percentiles of the latency against the load that was offered."""

    def draw(axes: Axes) -> None:
        x = _column(steps, "asked_pairs_per_s")
        for percent, (colour, marker, line) in zip(PERCENTILES, PERCENTILE_LOOKS, strict=True):
            axes.plot(x, _column(steps, f"p{percent}_ms"), color=colour, marker=marker,
                      linestyle=line, markersize=5, label=f"p{percent}")  # fmt: skip
        _patience(axes, settings)
        top = 1.3 * max(settings["patience_ms"], *_known(steps, "p99_ms"))
        axes.set(xlim=(0, 1.03 * max(x)), ylim=(0, top), xlabel="asked for (pairs/s)",
                 ylabel="latency of answers (ms)", title="How long answers take")  # fmt: skip
        axes.legend(loc="upper left", ncols=2)

    return svg_of("latency", "Latency percentiles against offered load", draw)


def goodput_by_load(steps: Sequence[Part], capacity_pairs_per_s: float) -> str:
    """What became of the pairs, against the load that was offered."""

    def draw(axes: Axes) -> None:
        x = _column(steps, "asked_pairs_per_s")
        _stack(axes, x, steps)
        axes.plot(x, _column(steps, "good_pairs_per_s"), color=FIRST, marker="o", markersize=5)
        axes.axvline(capacity_pairs_per_s, color=INK, linewidth=0.8, linestyle="--",
                     label="capacity")  # fmt: skip
        axes.set(xlim=(0, 1.03 * max(x)), ylim=(0, 1.05 * max(x)), xlabel="asked for (pairs/s)",
                 ylabel="pairs/s", title="What becomes of them")  # fmt: skip
        axes.legend(loc="upper left")

    return svg_of("goodput", "Pairs a second by outcome against offered load", draw)


def goodput_by_second(timeline: Part) -> str:
    """What became of the pairs that were due in each second."""

    def draw(axes: Axes) -> None:
        rows = timeline["rows"]
        # Each second is as wide as it is; the last one needs an end to have a width.
        edges_s = [*_column(rows, "at_s"), rows[-1]["at_s"] + 1]
        _stack(axes, edges_s, [*rows, rows[-1]], step="post")
        top = 1.35 * max(_column(rows, "asked_pairs_per_s"))
        axes.set(xlim=(0, edges_s[-1]), ylim=(0, top), xlabel="second of the run",
                 ylabel="pairs/s", title=f"A {timeline['shape']}, second by second")  # fmt: skip
        axes.legend(loc="upper left", ncols=2)

    return svg_of("seconds", "Pairs a second by outcome over time", draw)


def latency_by_second(timeline: Part, settings: Part) -> str:
    """Median and slowest answers to the requests that were due in each second."""

    def draw(axes: Axes) -> None:
        rows = [row for row in timeline["rows"] if row["p99_ms"] is not None]
        x = [at_s + 0.5 for at_s in _column(rows, "at_s")]
        axes.plot(x, _column(rows, "p50_ms"), color=FIRST, marker="o", markersize=3, label="p50")
        axes.plot(x, _column(rows, "p99_ms"), color=SECOND, marker="s", markersize=3,
                  linestyle=":", label="p99")  # fmt: skip
        _patience(axes, settings)
        top = 1.3 * max(settings["patience_ms"], *_known(rows, "p99_ms"))
        axes.set(xlim=(0, timeline["rows"][-1]["at_s"] + 1), ylim=(0, top),
                 xlabel="second of the run", ylabel="latency of answers (ms)",
                 title="Its latency")  # fmt: skip
        axes.legend(loc="upper left", ncols=3)

    return svg_of("waits", "Latency percentiles over time", draw)


def _stack(
    axes: Axes,
    x: Sequence[float],
    rows: Sequence[Part],
    step: Literal["post"] | None = None,
) -> None:
    """Areas on each other; what never happened is neither drawn nor named."""
    ground = [0.0] * len(rows)
    for fate, colour, alpha, hatch in STACK:
        height = [row["asked_pairs_per_s"] * row["shares"][fate] for row in rows]
        if not any(height):
            continue
        top = [low + more for low, more in zip(ground, height, strict=True)]
        face = (*mpl.colors.to_rgb(colour), alpha)
        axes.fill_between(x, ground, top, facecolor=face, edgecolor=colour, linewidth=0.6,
                          step=step, label=None if hatch else fate)  # fmt: skip
        if hatch:  # by itself: on a face of its own colour it would not be seen
            axes.fill_between(x, ground, top, facecolor="none", edgecolor=colour, hatch=hatch,
                              linewidth=0.6, step=step, label=fate)  # fmt: skip
        ground = top


def _patience(axes: Axes, settings: Part) -> None:
    axes.axhline(settings["patience_ms"], color=INK, linewidth=0.8, linestyle="--",
                 label="the caller's patience")  # fmt: skip


def _column(rows: Sequence[Part], key: str) -> list[Any]:
    return [float("nan") if row[key] is None else row[key] for row in rows]


def _known(rows: Sequence[Part], key: str) -> list[float]:
    """The numbers of a column; at least one."""
    return [row[key] for row in rows if row[key] is not None] or [0.0]
