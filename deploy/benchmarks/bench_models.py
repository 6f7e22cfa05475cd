"""What smaller models cost in quality, and what they give in speed.

Judges bundles on labelled pairs, through the classes that serve, and measures them in alternating
rounds on the same pairs; the speeds are compared with the first bundle's of the same round.

    python -m deploy.benchmarks.bench_models --bundle bundles/default --bundle bundles/l2 --pairs F
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from deploy.benchmarks import bench_setup
from deploy.benchmarks.recipe_speed import (
    Ratio,
    Rounds,
    measure_rounds,
    median_speed,
    micro_batches,
    ratio,
)
from model_export.evaluate import Quality, judge
from model_export.evaluation.models import score_with_bundle
from model_export.pairs import LabelledPair, read_pairs
from service.cpu import usable_cores
from service.scoring.bundle import Bundle, open_bundle

MARKERS = "os^Dv"  # a shape for each file of pairs: colours tell the precisions apart
COLOURS = {"int8": "#0072b2", "fp32": "#d55e00"}
"""Blue and vermillion of Okabe and Ito's palette, as in the export's report."""


@dataclass(frozen=True, slots=True)
class Row:
    """What was found out about one bundle.

    Attributes:
        name: Model and precision.
        precision: Of its weights.
        version: Of the model.
        quality: Of its calibrated scores, by file of pairs.
        pairs_per_s: Median of the rounds.
        to_first: Its speed by that of the first bundle.
    """

    name: str
    precision: str
    version: str
    quality: dict[str, Quality]
    pairs_per_s: float
    to_first: Ratio


def main() -> None:
    """Judge, measure, print, save."""
    options = _arguments()
    files = {path.stem: read_pairs(path) for path in options.pairs}
    bundles = {_name(bundle): bundle for bundle in map(open_bundle, options.bundle)}
    quality = {
        name: {stem: _quality(path, pairs) for stem, pairs in files.items()}
        for name, path in zip(bundles, options.bundle, strict=True)
    }
    first = next(iter(bundles.values()))
    encoded = [first.encode(pair.query, [pair.ad])[0] for pairs in files.values() for pair in pairs]
    rounds = measure_rounds(
        {name: bundle.model for name, bundle in bundles.items()},
        micro_batches(encoded),
        threads=usable_cores(),
        n_rounds=options.rounds,
        seconds=options.seconds,
        report=lambda line: print(line, file=sys.stderr, flush=True),
    )
    found = rows(bundles, quality, rounds)
    print(table(found))
    results = {
        "n_pairs": len(encoded),
        "mean_tokens": sum(pair.length_tokens for pair in encoded) / len(encoded),
        "rows": [asdict(row) for row in found],
        "pairs_per_s_by_round": rounds,
    }
    bench_setup.save(options.out, "models", results, lambda figure: draw(figure, found))


def rows(
    bundles: Mapping[str, Bundle], quality: Mapping[str, dict[str, Quality]], rounds: Rounds
) -> list[Row]:
    """One for each bundle, in their order."""
    first = next(iter(bundles))
    return [
        Row(
            name=name,
            precision=bundle.manifest.precision.weights,
            version=bundle.manifest.model.version,
            quality=quality[name],
            pairs_per_s=median_speed(rounds, name),
            to_first=ratio(rounds, name, first),
        )
        for name, bundle in bundles.items()
    ]


def table(found: Sequence[Row]) -> str:
    """Markdown: for each file AUC, NDCG@10 where it has one, and calibration error."""
    files = list(found[0].quality)
    heads = ["model", *(f"{file}: AUC, NDCG@10, ECE" for file in files), "pairs/s", "to the first"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in found:
        judged = (_cell(row.quality[file]) for file in files)
        cells = [row.name, *judged, f"{row.pairs_per_s:.0f}", str(row.to_first)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(figure: Any, found: Sequence[Row]) -> None:  # noqa: ANN401  # matplotlib's
    """One plot for each file: right is faster, up is better."""
    files = list(found[0].quality)
    shared = os.path.commonprefix([row.name for row in found])  # noqa: RUF071  # letters are meant
    n_shared = shared.rfind("-") + 1  # up to the last whole word
    for axes, file, marker in zip(
        figure.subplots(1, len(files), squeeze=False)[0], files, MARKERS, strict=False
    ):
        for precision, colour in COLOURS.items():
            own = [row for row in found if row.precision == precision]
            speeds = [row.to_first.median for row in own]
            aucs = [row.quality[file].auc for row in own]
            axes.plot(speeds, aucs, marker + "-", color=colour, label=precision)
            for row, speed, value in zip(own, speeds, aucs, strict=True):
                axes.annotate(
                    row.name[n_shared:].removesuffix(f" {precision}"),
                    (speed, value),
                    xytext=(5, 5 if precision == "fp32" else -12),
                    textcoords="offset points",
                    fontsize=8,
                )
        axes.set(title=file, xlabel=f"speed, in multiples of {found[0].name}", ylabel="AUC")
        axes.set_xlim(left=0)
        axes.margins(0.2)
        axes.grid(alpha=0.4)
        axes.legend(frameon=False)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--bundle", type=Path, action="append", required=True, metavar="DIR", help="repeatable")
    add("--pairs", type=Path, action="append", required=True, metavar="FILE",
        help="labelled pairs, judged file by file; repeatable")  # fmt: skip
    add("--rounds", type=int, default=7, help="of speed; default: %(default)s")
    add("--seconds", type=float, default=2.0,
        help="of each bundle in each round, about; default: %(default)s")  # fmt: skip
    add("--out", type=Path, default=Path("build/benchmarks"), help="folder")
    return parser.parse_args()


def _name(bundle: Bundle) -> str:
    return f"{bundle.manifest.model.name} {bundle.manifest.precision.weights}"


def _quality(folder: Path, pairs: Sequence[LabelledPair]) -> Quality:
    return judge(pairs, score_with_bundle(folder, pairs).scores)


def _cell(quality: Quality) -> str:
    figures = (quality.auc, quality.ndcg_at_10, quality.calibration_error)
    return ", ".join("-" if figure is None else f"{figure:.3f}" for figure in figures)


if __name__ == "__main__":
    main()
