"""Which quantization recipe may an auction use?

    .venv/bin/python -m deploy.benchmarks.bench_recipes --pairs FILE --ranges-from FILE

Builds one checkpoint by each recipe and measures what it does to scores (against torch, and of the
same pair in other company), to ranking quality on labelled pairs, to the file and to the speed.
Without `--pairs`, the pairs of the export's parity check are used, and no quality is judged.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from deploy.benchmarks import bench_setup
from deploy.benchmarks.bench_bundle import N_AWKWARD_PAIRS
from deploy.benchmarks.build_recipes import BuiltRecipe, build_recipes
from deploy.benchmarks.machine import cpu_model, machine_facts
from deploy.benchmarks.recipe_figures import RecipeFigures, recipe_figures
from deploy.benchmarks.recipe_report import as_json, draw, rows, table
from deploy.benchmarks.recipe_speed import measure_rounds, micro_batches
from deploy.benchmarks.recipes import IN_FLOAT, weights_need_seven_bits
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.pairs import LabelledPair, read_pairs
from model_export.parity import torch_logits
from model_export.reference_pairs import reference_pairs
from model_export.shipped_models import DEFAULT_MODEL, load_shipped
from model_export.to_onnx import convert, takes_segments
from service.cpu import usable_cores
from service.domain import Ad
from service.scoring.encoding import EncodedPair, PairEncoder
from service.scoring.onnx_model import OnnxModel

N_RANGE_PAIRS = 200
N_MADE_PAIRS = 240  # judged where no file is given
MADE_PAIRS_FOR_RANGES = 1_000  # of which enough are not judged

Text = tuple[str, Ad]


def main() -> None:
    """Build, judge, measure, print, save."""
    options = _arguments()
    checkpoint = _load(options.checkpoint, options.relevant_label)
    labelled = _read(options.pairs)[: options.max_pairs]
    texts = [(pair.query, pair.ad) for pair in labelled] or made_texts(options.max_pairs)
    judged = _encode(checkpoint, texts)
    ranges = _encode(checkpoint, range_texts(texts, _read(options.ranges_from)))
    seven_bits = weights_need_seven_bits(cpu_model())
    with TemporaryDirectory() as folder:
        _say(f"convert {checkpoint.name}; weights of the tools' recipes: {8 - seven_bits} bits")
        built, reasons = build_recipes(
            convert(checkpoint.model, checkpoint.tokenizer),
            convert(checkpoint.model, checkpoint.tokenizer, for_gpu=True),
            Path(folder),
            ranges,
            reduce_range=seven_bits,
            report=_say,
        )
        models = {one.name: _open(checkpoint, one) for one in built}
        figures = _judge(checkpoint, models, judged, labelled)
        rounds = measure_rounds(
            models,
            micro_batches(judged),
            threads=usable_cores(),
            n_rounds=options.rounds,
            seconds=options.seconds,
            report=_say,
        )
        found = rows(built, figures, rounds)
    facts = {
        "checkpoint": checkpoint.name,
        "n_pairs": len(judged),
        "mean_tokens": statistics.mean(pair.length_tokens for pair in judged),
        "labelled": bool(labelled),
        "n_range_pairs": len(ranges),
        "tools_weight_bits": 8 - seven_bits,
    }
    results = as_json(found, reasons, rounds, facts)
    if options.json:
        print(json.dumps({"machine": machine_facts(), **results}, indent=2))
    else:
        print(", ".join(f"{name} {value}" for name, value in {**machine_facts(), **facts}.items()))
        print(f"\n{table(found, reasons)}\n")
    with contextlib.redirect_stdout(sys.stderr):  # stdout is for the result alone
        bench_setup.save(options.out, "recipes", results, lambda figure: draw(figure, found))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--checkpoint", metavar="DIR_OR_ID", help="default: the default model")
    add("--relevant-label", metavar="LABEL", help="two-class heads: the label that is relevant")
    add("--pairs", type=Path, action="append", default=[], metavar="FILE",
        help="labelled pairs (JSONL) to judge by; repeatable")  # fmt: skip
    add("--ranges-from", type=Path, action="append", default=[], metavar="FILE",
        help="other pairs, for the static ranges; default: made ones")  # fmt: skip
    add("--max-pairs", type=int, default=1_000, help="of --pairs; default: %(default)s")
    add("--rounds", type=int, default=7, help="of speed; default: %(default)s")
    add("--seconds", type=float, default=3.0,
        help="of each recipe in each round, about; default: %(default)s")  # fmt: skip
    add("--out", type=Path, default=Path("build/benchmarks"), help="folder")
    add("--json", action="store_true", help="print the record instead of the table")
    return parser.parse_args()


def made_texts(n_pairs: int) -> list[Text]:
    """The reference pairs without the awkward giants, in a fixed random order."""
    texts = reference_pairs(N_MADE_PAIRS)[N_AWKWARD_PAIRS:]
    random.Random(0).shuffle(texts)  # noqa: S311  # a fixed order is wanted
    return texts[:n_pairs]


def range_texts(judged: Sequence[Text], labelled: Sequence[LabelledPair]) -> list[Text]:
    """Texts for the static ranges: of the file, else made ones; none that is judged."""
    candidates: Sequence[Text] = [(pair.query, pair.ad) for pair in labelled]
    if not candidates:
        candidates = reference_pairs(MADE_PAIRS_FOR_RANGES)[N_AWKWARD_PAIRS:]
    seen = {_shown(text) for text in judged}
    unseen = {_shown(text): text for text in candidates if _shown(text) not in seen}
    texts = list(unseen.values())
    random.Random(0).shuffle(texts)  # noqa: S311  # a file may be sorted by query
    return texts[:N_RANGE_PAIRS]


def _shown(text: Text) -> tuple[str, ...]:
    query, ad = text
    return query, ad.title, ad.description, ad.text


def _load(reference: str | None, relevant_label: str | None) -> Checkpoint:
    if reference is None:
        return load_shipped(DEFAULT_MODEL)
    return load_checkpoint(reference, relevant_label, None)


def _read(files: Sequence[Path]) -> list[LabelledPair]:
    return [pair for file in files for pair in read_pairs(file)]


def _encode(checkpoint: Checkpoint, texts: Sequence[Text]) -> list[EncodedPair]:
    encoder = PairEncoder(checkpoint.backend, checkpoint.max_length_tokens)
    render = checkpoint.template.render
    return [encoder.encode(query, [render(ad)])[0] for query, ad in texts]


def _open(checkpoint: Checkpoint, recipe: BuiltRecipe) -> OnnxModel:
    return OnnxModel(recipe.path, n_logits=checkpoint.head.n_logits, pad_id=checkpoint.pad_id)


def _judge(
    checkpoint: Checkpoint,
    models: dict[str, OnnxModel],
    pairs: Sequence[EncodedPair],
    labelled: Sequence[LabelledPair],
) -> dict[str, RecipeFigures]:
    _say(f"torch on {len(pairs)} pairs")
    reference = torch_logits(
        checkpoint.model,
        pairs,
        with_segments=takes_segments(checkpoint.model, checkpoint.tokenizer),
    )
    figures = {}
    for name, model in models.items():
        _say(f"judge {name}")
        figures[name] = recipe_figures(
            model,
            pairs,
            reference,
            checkpoint.head,
            labelled=labelled,
            precision="fp32" if name in IN_FLOAT else "int8",
            threads=usable_cores(),
        )
    return figures


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
