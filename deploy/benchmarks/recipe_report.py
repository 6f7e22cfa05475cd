"""The table, the record and the plot of `bench_recipes`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from deploy.benchmarks.build_recipes import BuiltRecipe
from deploy.benchmarks.recipe_figures import RecipeFigures
from deploy.benchmarks.recipe_speed import Ratio, Rounds, median_speed, ratio
from deploy.benchmarks.recipes import FP32, PER_TENSOR

HEADINGS = (
    "recipe", "may serve an auction", "spread max", "spread p99", "score off by, mean", "worst",
    "AUC", "NDCG@10", "products", "MB", "pairs/s", "to fp32", "to per-tensor",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """All that was found out about one recipe."""

    name: str
    n_products: int
    file_bytes: int
    figures: RecipeFigures
    pairs_per_s: float
    to_fp32: Ratio
    to_per_tensor: Ratio


def rows(
    built: Sequence[BuiltRecipe], figures: Mapping[str, RecipeFigures], rounds: Rounds
) -> list[Row]:
    """One for each recipe, in the order in which they were built."""
    return [
        Row(
            name=one.name,
            n_products=one.n_products,
            file_bytes=one.file_bytes,
            figures=figures[one.name],
            pairs_per_s=median_speed(rounds, one.name),
            to_fp32=ratio(rounds, one.name, FP32),
            to_per_tensor=ratio(rounds, one.name, PER_TENSOR),
        )
        for one in built
    ]


def table(found: Sequence[Row], reasons: Mapping[str, str]) -> str:
    """Markdown; below it, what could not be measured and why."""
    lines = ["| " + " | ".join(HEADINGS) + " |", "|---" * len(HEADINGS) + "|"]
    lines += ["| " + " | ".join(_cells(row)) + " |" for row in found]
    return "\n".join([*lines, *(f"\n{name}: left out, {why}" for name, why in reasons.items())])


def _cells(row: Row) -> list[str]:
    figures = row.figures
    return [
        row.name,
        "no: " + ", ".join(figures.refused_for) if figures.refused_for else "yes",
        f"{figures.worst_spread:.4f}",
        f"{figures.p99_spread:.4f}",
        f"{figures.mean_score:.4f}",
        f"{figures.worst_score:.4f}",
        _known(figures.auc),
        _known(figures.ndcg_at_10),
        str(row.n_products),
        f"{row.file_bytes / 1e6:.1f}",
        f"{row.pairs_per_s:.0f}",
        str(row.to_fp32),
        str(row.to_per_tensor),
    ]


def _known(figure: float | None) -> str:
    return "-" if figure is None else f"{figure:.4f}"


def as_json(
    found: Sequence[Row],
    reasons: Mapping[str, str],
    rounds: Rounds,
    facts: Mapping[str, Any],
) -> dict[str, Any]:
    """The table, every round, and what else one must know to repeat it."""
    return {
        **facts,
        "rows": [asdict(row) for row in found],
        "left_out": dict(reasons),
        "pairs_per_s_by_round": rounds,
    }


def draw(figure: Any, found: Sequence[Row]) -> None:  # noqa: ANN401  # matplotlib's
    """Right is faster, low is truer; red points move with their company."""
    axes = figure.subplots()
    for number, row in enumerate(found, start=1):
        speed, spread = row.to_fp32, row.figures.worst_spread
        axes.errorbar(
            speed.median,
            row.figures.mean_score,
            xerr=[[speed.median - speed.lowest], [speed.highest - speed.median]],
            fmt="o",
            color="tab:green" if spread == 0 else "tab:red",
            capsize=3,
            label=f"{number}  {row.name}, spread {spread:.2g}",
        )
        axes.annotate(
            str(number),  # recipes of one kind lie close together: their names stand beside
            (speed.median, row.figures.mean_score),
            xytext=(0, 6 + 9 * (number % 2)),
            ha="center",
            textcoords="offset points",
            fontsize=8,
        )
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=-0.004)
    axes.margins(y=0.15)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    axes.set(
        xlabel="speed, in multiples of fp32 (median of rounds, lowest to highest)",
        ylabel="mean change of the score against torch",
    )
