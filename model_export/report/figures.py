"""The figures of the report: each takes its part of `report.json` and gives an `<svg>`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, MaxNLocator, NullLocator

from model_export.report.svg import DOT_OPACITY, FIRST, INK, QUIET, SECOND, svg_of

Part = Mapping[str, Any]

N_WORST_MARKED = 10


def reliability(part: Part) -> str:
    """Share of relevant pairs against mean score, before and after score calibration."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1, label="score = share relevant")
        looks = (("before", SECOND, "s", ":", "none"), ("after", FIRST, "o", "-", FIRST))
        for side, colour, marker, line, face in looks:
            bins = part[side]["bins"]
            x, y = _column(bins, "mean_score"), _column(bins, "share_relevant")
            below = [share - low for share, low in zip(y, _column(bins, "low"), strict=True)]
            above = [high - share for share, high in zip(y, _column(bins, "high"), strict=True)]
            axes.errorbar(x, y, yerr=[below, above], color=colour, marker=marker, linestyle=line,
                          markerfacecolor=face, markersize=5, linewidth=1.2, elinewidth=0.8,
                          capsize=2, label=f"{side}, {_count_range(bins)}")  # fmt: skip
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="mean score of the bin",
                 ylabel="share of relevant pairs", title="Does 0.8 mean 80 of 100?")  # fmt: skip
        axes.legend(loc="upper left")

    return svg_of("reliability", "Reliability diagram before and after score calibration", draw)


def score_histogram(part: Part) -> str:
    """How many pairs have which score, by label."""

    def draw(axes: Axes) -> None:
        edges, series = part["edges"], part["series"]
        looks = ((FIRST, ""), (SECOND, "////"))
        for (colour, hatch), one in zip(looks, series, strict=False):
            axes.stairs(one["counts"], edges, fill=True, facecolor=colour, alpha=0.3)
            axes.stairs(one["counts"], edges, edgecolor=colour, hatch=hatch, fill=False,
                        linewidth=1.4, label=f"{one['name']} ({one['n_pairs']:,})")  # fmt: skip
        top = 1.25 * max(max(one["counts"]) for one in series)
        axes.set(xlim=(0, 1), ylim=(0, top), xlabel="calibrated score", ylabel="pairs",
                 title="Scores, as they are served")  # fmt: skip
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper center")

    return svg_of("scores", "Histogram of the calibrated scores", draw)


def agreement(part: Part) -> str:
    """Served score against the original's."""

    def draw(axes: Axes) -> None:
        x, y = part["reference"], part["served"]
        axes.plot([0, 1], [0, 1], color=QUIET, linewidth=1, label="no change")
        _dots(axes, x, y)
        axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02), xlabel="score of the torch model",
                 ylabel="score of the served graph", title="Served against torch")  # fmt: skip
        axes.legend(loc="upper left")

    return svg_of("agreement", "Scatter plot of served score against torch score", draw)


def change(part: Part, tolerance: float | None) -> str:
    """How far each score moved, against the original's score, with what is tolerated."""

    def draw(axes: Axes) -> None:
        x, y = part["reference"], part["change"]
        axes.axhline(0, color=QUIET, linewidth=1)
        _dots(axes, x, y)
        reach = max([abs(value) for value in y] + [tolerance or 0.0])
        if tolerance:
            for side in (-tolerance, tolerance):
                axes.axhline(side, color=INK, linewidth=0.8, linestyle="--",
                             label="tolerance" if side > 0 else None)  # fmt: skip
        top = 1.15 * reach or 1e-6
        axes.set(xlim=(-0.02, 1.02), ylim=(-top, 1.5 * top), xlabel="score of the torch model",
                 ylabel="served less torch score", title="The same, as a difference")  # fmt: skip
        axes.legend(loc="upper left", ncols=2)

    return svg_of("change", "Scatter plot of the score change against the torch score", draw)


def spread(part: Part) -> str:
    """How many pairs change by how much with their batch mates; zero is a bar like any other."""

    def draw(axes: Axes) -> None:
        names = [one["class"] for one in part["classes"]]
        counts = [one["n_pairs"] for one in part["classes"]]
        colours = [FIRST] + [SECOND] * (len(names) - 1)
        bars = axes.barh(names, counts, color=colours, height=0.7)
        axes.bar_label(bars, [f"{count:,}" for count in counts], padding=3)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
        axes.set(xlim=(0, 1.12 * max(counts)), xlabel="pairs", ylabel="largest change of the score",
                 title="The same pair in other company")  # fmt: skip

    return svg_of("spread", "Histogram of the largest score change with the batch mates", draw)


def lengths(part: Part) -> str:
    """How long the pairs are, and which of them were cut."""

    def draw(axes: Axes) -> None:
        edges, whole, cut = part["edges_tokens"], part["whole"], part["truncated"]
        total = [a + b for a, b in zip(whole, cut, strict=True)]
        axes.stairs(whole, edges, fill=True, color=FIRST, label="whole")
        if part["n_truncated"]:
            axes.bar(edges[:-1], cut, edges[1] - edges[0], bottom=whole, align="edge",
                     facecolor="none", edgecolor=SECOND, linewidth=[count and 1 for count in cut],
                     hatch="////", label="truncated")  # fmt: skip
        limit = part["limit_tokens"]
        axes.set(xlim=(0, edges[-1]), ylim=(0, 1.2 * max(total)), ylabel="pairs",
                 xlabel=f"length with special tokens (tokens, at most {limit:,})",
                 title="Pairs by length")  # fmt: skip
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.legend(loc="upper left", ncols=2)

    return svg_of("lengths", "Histogram of the lengths in tokens", draw)


def latency(part: Part) -> str:
    """Median time of one run against the batch size."""
    return _by_batch_size(
        part, "median_ms", "latency", "median time of a run (ms)", "Time of one run"
    )


def throughput(part: Part) -> str:
    """Pairs a second of one thread against the batch size."""
    return _by_batch_size(
        part, "pairs_per_s", "throughput", "pairs a second, one thread", "Pairs a second"
    )


def _by_batch_size(part: Part, figure: str, name: str, label: str, title: str) -> str:
    def draw(axes: Axes) -> None:
        rows = part["rows"]
        looks = ((SECOND, "s", ":"), (FIRST, "o", "-"), (INK, "^", "--"))
        for index, model in enumerate(dict.fromkeys(_column(rows, "model"))):
            colour, marker, line = looks[index % len(looks)]
            mine = [row for row in rows if row["model"] == model]
            axes.plot(_column(mine, "batch_pairs"), _column(mine, figure), color=colour,
                      marker=marker, linestyle=line, markersize=5, label=model)  # fmt: skip
        sizes = sorted(set(_column(rows, "batch_pairs")))
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(FixedLocator(sizes))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_xticks(sizes, [str(size) for size in sizes])
        axes.set(ylim=(0, 1.2 * max(_column(rows, figure))), xlabel="pairs in the batch",
                 ylabel=label, title=title)  # fmt: skip
        axes.legend(loc="upper left", ncols=2)

    return svg_of(name, f"{title} against batch size", draw)


def _dots(axes: Axes, x: Sequence[float], y: Sequence[float]) -> None:
    """All points, with rings around the first ones, which are the worst."""
    axes.plot(x, y, marker="o", linestyle="none", markersize=3, markeredgewidth=0, color=FIRST,
              alpha=DOT_OPACITY, label="a pair")  # fmt: skip
    worst = slice(0, N_WORST_MARKED)
    axes.plot(x[worst], y[worst], marker="o", linestyle="none", markersize=7,
              markerfacecolor="none", markeredgecolor=SECOND, label="worst ten")  # fmt: skip


def _count_range(bins: Sequence[Part]) -> str:
    counts = _column(bins, "n_pairs")
    low, high = min(counts), max(counts)
    together = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{together} pairs a point"


def _column(rows: Sequence[Part], key: str) -> list[Any]:
    return [row[key] for row in rows]
