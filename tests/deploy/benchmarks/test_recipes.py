from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from deploy.benchmarks import bench_recipes, recipes
from deploy.benchmarks import build_recipes as build_recipes_module
from deploy.benchmarks.bench_recipes import N_RANGE_PAIRS, made_texts, range_texts
from deploy.benchmarks.build_recipes import (
    BuiltRecipe,
    build_recipes,
    integer_products,
    prepare,
)
from deploy.benchmarks.recipe_figures import RecipeFigures, recipe_figures
from deploy.benchmarks.recipe_report import as_json, draw, rows, table
from deploy.benchmarks.recipe_speed import (
    even_sample,
    measure_rounds,
    micro_batches,
    ratio,
    rotations,
)
from deploy.benchmarks.recipes import (
    FP32,
    IN_FLOAT,
    PER_TENSOR,
    RECIPES,
    ROW_WISE,
    constant_products,
    weights_need_seven_bits,
)
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.pairs import LabelledPair
from model_export.parity import IN_MICRO_BATCHES, batch_spread
from model_export.to_onnx import convert
from service.domain import Ad
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair
from service.scoring.onnx_model import OnnxModel

Built = tuple[dict[str, BuiltRecipe], dict[str, str]]
N_LAYERS = 2
N_PRODUCTS = 6 * N_LAYERS
ONNXSIM = "zeroquant of onnxsim"


@pytest.fixture(scope="module")
def bundle(tiny_bundle_fp32: Path) -> Bundle:
    return open_bundle(tiny_bundle_fp32)


@pytest.fixture(scope="module")
def pairs(bundle: Bundle) -> list[EncodedPair]:
    return [bundle.encode(query, [ad])[0] for query, ad in made_texts(60)]


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), None, None)


@pytest.fixture
def graph(checkpoint: Checkpoint) -> onnx.ModelProto:
    return convert(checkpoint.model, checkpoint.tokenizer)


@pytest.fixture(scope="module")
def built(
    bundle: Bundle, checkpoint: Checkpoint, tmp_path_factory: pytest.TempPathFactory
) -> Built:
    graph = convert(checkpoint.model, checkpoint.tokenizer)
    usual = convert(checkpoint.model, checkpoint.tokenizer, for_gpu=True)
    ranges = [bundle.encode(q, [ad])[0] for q, ad in range_texts(made_texts(60), [])[:20]]
    folder = tmp_path_factory.mktemp("r")
    made, reasons = build_recipes(graph, usual, folder, ranges, reduce_range=True)
    return {one.name: one for one in made}, reasons


def figures_of(
    built: Built, name: str, bundle: Bundle, pairs: Sequence[EncodedPair]
) -> RecipeFigures:
    model = OnnxModel(built[0][name].path, n_logits=1)
    alone = np.concatenate([bundle.model.logits([pair]) for pair in pairs])
    return recipe_figures(model, pairs, alone, bundle.manifest.head)


def test_every_recipe_computes_the_same_products_in_integers(built: Built) -> None:
    made, reasons = built
    assert {*made, *reasons} == {FP32, *RECIPES}
    assert {*reasons} <= {ONNXSIM}
    assert {made[name].n_products for name in IN_FLOAT} == {0}
    assert {one.n_products for name, one in made.items() if name not in IN_FLOAT} == {N_PRODUCTS}


def test_a_product_of_int8_weights_that_runs_in_float_is_no_integer_product(
    graph: onnx.ModelProto, pairs: list[EncodedPair], tmp_path: Path
) -> None:
    products = prepare(graph)
    del graph.graph.value_info[:]  # the types of the activations: the tool then leaves them alone
    onnx.save(graph, tmp_path / "fp32.onnx")
    fp32 = tmp_path / "fp32.onnx"
    sources = recipes.Sources(fp32, fp32, fp32, products, pairs[:5], reduce_range=False)
    RECIPES["static QDQ, MinMax"](sources, tmp_path / "static.onnx")
    assert not constant_products(onnx.load(tmp_path / "static.onnx"))
    # Four read what a fused operator gives, whose type nothing can infer.
    assert integer_products(tmp_path / "static.onnx", products) == N_PRODUCTS - 2 * N_LAYERS


def test_products_without_a_name_get_one_each(graph: onnx.ModelProto) -> None:
    for node in graph.graph.node:
        node.name = ""
    names = prepare(graph)
    assert len({*names} - {""}) == len(names) == N_PRODUCTS


def test_a_missing_onnxsim_is_a_reason_and_no_error(
    graph: onnx.ModelProto, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build_recipes_module, "RECIPES", {ONNXSIM: RECIPES[ONNXSIM]})
    monkeypatch.setitem(sys.modules, "onnxsim", None)  # so that its import fails
    made, reasons = build_recipes(graph, graph, tmp_path, [], reduce_range=False)
    assert [one.name for one in made] == [FP32]
    assert reasons == {ONNXSIM: "onnxsim is not installed"}


@pytest.mark.parametrize(
    ("cpu", "machine", "expected"),
    [
        ("A avx2", "x86_64", True),
        ("A avx2 avx512f", "AMD64", True),
        ("A avx2 avx512f avx512_vnni", "x86_64", False),
        ("Neoverse", "aarch64", False),
    ],
)
def test_weights_need_seven_bits_on_x86_without_vnni(
    cpu: str, machine: str, expected: bool
) -> None:
    assert weights_need_seven_bits(cpu, machine) is expected


def test_the_usual_recipe_is_refused_for_its_spread_and_ours_has_none(
    built: Built, bundle: Bundle, pairs: list[EncodedPair]
) -> None:
    usual = figures_of(built, PER_TENSOR, bundle, pairs)
    assert "batch_spread" in usual.refused_for
    assert usual.worst_spread > usual.p99_spread > 0
    ours = figures_of(built, ROW_WISE, bundle, pairs)
    assert ours.refused_for == ()
    assert ours.worst_spread == 0
    assert 0 < ours.mean_score < ours.worst_score


class Moody:
    """A pair's logit is a share of the longest length in its batch."""

    def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
        longest = max(pair.length_tokens for pair in batch)
        return np.full((len(batch), 1), longest / 100, np.float32)


def test_the_spread_is_of_the_companies_that_the_export_tries(
    bundle: Bundle, pairs: list[EncodedPair]
) -> None:
    reference = np.zeros((len(pairs), 1), np.float32)
    figures = recipe_figures(Moody(), pairs, reference, bundle.manifest.head)
    assert len(figures.spread) == 3
    low = min(pair.length_tokens for pair in pairs) / 100
    high = max(pair.length_tokens for pair in pairs) / 100
    assert batch_spread(Moody(), pairs) == pytest.approx(high - low, abs=1e-6)
    worst = 1 / (1 + np.exp(-high)) - 1 / (1 + np.exp(-low))
    assert figures.spread["beside the longest"].worst == pytest.approx(worst, abs=1e-6)
    assert figures.spread[IN_MICRO_BATCHES].worst < worst
    assert figures.worst_spread == pytest.approx(worst, abs=1e-6)


def test_quality_is_judged_where_there_are_labels(bundle: Bundle, pairs: list[EncodedPair]) -> None:
    lengths = [pair.length_tokens for pair in pairs]
    labelled = [
        LabelledPair("q", Ad(str(i), text="x"), float(length == max(lengths)))
        for i, length in enumerate(lengths)
    ]
    logits = np.array([[length / 100] for length in lengths], np.float32)

    class Fair:
        def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
            return np.array([[pair.length_tokens / 100] for pair in batch], np.float32)

    figures = recipe_figures(Fair(), pairs, logits, bundle.manifest.head, labelled=labelled)
    assert figures.auc == figures.ndcg_at_10 == 1
    unlabelled = recipe_figures(Fair(), pairs, logits, bundle.manifest.head)
    assert unlabelled.auc is unlabelled.ndcg_at_10 is None


def test_no_text_for_the_ranges_is_judged() -> None:
    judged = made_texts(100)
    label = [LabelledPair(query, ad, 1.0) for query, ad in [*judged, ("new", Ad("1", text="x"))]]
    assert range_texts(judged, label) == [("new", Ad("1", text="x"))]
    shown = {(query, ad.title, ad.description) for query, ad in judged}
    made = range_texts(judged, [])
    assert len(made) == N_RANGE_PAIRS
    assert not shown & {(query, ad.title, ad.description) for query, ad in made}


class Clock:
    """Time passes by what models run."""

    def __init__(self) -> None:
        self.now_s = 0.0


class Steady:
    """Takes as many milliseconds for a pair as it is told."""

    def __init__(self, clock: Clock, ms_a_pair: float, log: list[str]) -> None:
        self.clock, self.ms_a_pair, self.log = clock, ms_a_pair, log

    def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
        self.clock.now_s += self.ms_a_pair * len(batch) / 1000
        self.log.append(f"{self.ms_a_pair}")
        return np.zeros((len(batch), 1), np.float32)


def measured(n_rounds: int, seconds: float) -> tuple[list[dict[str, float]], float, list[str]]:
    clock, log = Clock(), list[str]()
    models = {"fast": Steady(clock, 1, log), "slow": Steady(clock, 4, log)}
    pair = EncodedPair(np.zeros(8, np.int64), np.zeros(8, np.int64), truncated=False)
    rounds = measure_rounds(
        models,
        micro_batches([pair] * 4000),
        threads=1,
        n_rounds=n_rounds,
        seconds=seconds,
        now_s=lambda: clock.now_s,
    )
    return rounds, clock.now_s, log


def test_every_round_runs_every_model_and_ratios_are_of_one_round() -> None:
    rounds, _, _ = measured(n_rounds=3, seconds=1.0)
    assert len(rounds) == 3
    assert rounds[0] == pytest.approx({"fast": 1000, "slow": 250})
    assert ratio(rounds, "fast", "slow").median == pytest.approx(4)
    uneven = [{"a": 1.0, "b": 2.0}, {"a": 30.0, "b": 10.0}, {"a": 5.0, "b": 5.0}]
    assert str(ratio(uneven, "a", "b")) == "1.00 (0.50-3.00)"


def test_the_time_of_a_run_is_bounded_by_its_slowest_model() -> None:
    _, short_s, _ = measured(n_rounds=2, seconds=0.5)
    _, long_s, _ = measured(n_rounds=4, seconds=1.0)
    assert short_s < 2 * 2 * 0.5 + 0.5
    assert short_s < long_s < 4 * 2 * 1.0 + 0.5


def test_each_round_starts_with_another_model() -> None:
    assert [order[0] for order in rotations(["a", "b", "c"], 4)] == ["a", "b", "c", "a"]
    assert all(sorted(order) == ["a", "b", "c"] for order in rotations(["a", "b", "c"], 4))


def test_a_sample_has_batches_of_all_lengths_longest_first() -> None:
    ids = [np.zeros(length, np.int64) for length in range(1, 81)]
    batches = micro_batches([EncodedPair(one, one, truncated=False) for one in ids])
    assert [len(batch) for batch in batches] == [8] * 10
    longest = [max(pair.length_tokens for pair in batch) for batch in even_sample(batches, 5)]
    assert longest == [72, 56, 40, 24, 8]
    assert len(even_sample(batches, 99)) == 10
    assert len(even_sample(batches, 0)) == 1


def test_the_table_says_what_may_serve_and_what_was_left_out(
    built: Built, bundle: Bundle, pairs: list[EncodedPair], tmp_path: Path
) -> None:
    from matplotlib.figure import Figure

    names = [FP32, PER_TENSOR, ROW_WISE]
    rounds = [{name: 100.0 * (i + 1) for i, name in enumerate(names)}] * 2
    figures = {name: figures_of(built, name, bundle, pairs) for name in names}
    found = rows([built[0][name] for name in names], figures, rounds)
    lines = table(found, {"x": "not there"}).splitlines()
    cells = [[cell.strip() for cell in line.split("|")] for line in lines if line.startswith("|")]
    assert {len(row) for row in cells} == {15}
    assert [row[2].partition(":")[0] for row in cells[2:]] == ["yes", "no", "yes"]
    assert [row[12] for row in cells[2:]] == [
        "1.00 (1.00-1.00)", "2.00 (2.00-2.00)", "3.00 (3.00-3.00)",
    ]  # fmt: skip
    assert lines[-1] == "x: left out, not there"
    record = as_json(found, {"x": "not there"}, rounds, {"n_pairs": 60})
    assert json.loads(json.dumps(record, allow_nan=False))["left_out"] == {"x": "not there"}
    figure = Figure()
    draw(figure, found)
    figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_a_whole_run_prints_a_record_and_leaves_it_with_a_plot(
    tiny_checkpoint: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "pairs.jsonl"
    labelled = [
        {"query": query, "title": ad.title, "description": ad.description, "label": index % 2}
        for index, (query, ad) in enumerate(made_texts(30))
    ]
    file.write_text("\n".join(map(json.dumps, labelled)), encoding="utf-8")
    options = ["--checkpoint", str(tiny_checkpoint), "--pairs", str(file), "--out", str(tmp_path)]
    options += ["--rounds", "1", "--seconds", "0.05", "--max-pairs", "20", "--json"]
    monkeypatch.setattr("sys.argv", ["bench_recipes", *options])
    bench_recipes.main()
    record = json.loads(capsys.readouterr().out)
    assert record["n_pairs"] == 20
    assert record["machine"]["cores"] >= 1
    assert {row["name"] for row in record["rows"]} >= {FP32, PER_TENSOR, ROW_WISE}
    assert all(0 <= row["figures"]["auc"] <= 1 for row in record["rows"])
    saved = json.loads((tmp_path / "recipes.json").read_text(encoding="utf-8"))
    assert saved["rows"] == record["rows"]
    assert (tmp_path / "recipes.png").read_bytes().startswith(b"\x89PNG")
