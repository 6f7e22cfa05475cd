"""The graphs that are exported against an encoder that was written from the papers alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.checkpoint import load_checkpoint
from model_export.export import export_bundle
from model_export.parity import TOLERANCES, batch_spread, compare, violations
from model_export.reference_pairs import reference_pairs
from service.scoring.bulk import bulk_logits
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair
from tests.export_options import quick, without_figures
from tests.model_export import numpy_encoder
from tests.model_export.numpy_encoder import Array, Integers, NumpyEncoder, gelu, tanh_gelu
from tests.tiny_models import write_bert

TOLERANCE_LOGIT = 1e-4
EPSILON = 1e-2  # of the made models: large enough that another one shows
BATCH_PAIRS = 32


@dataclass(frozen=True)
class Exported:
    """A checkpoint, its bundle, and every reference pair as the service encodes it."""

    witness: NumpyEncoder
    bundle: Bundle
    pairs: list[EncodedPair]
    expected: Array  # (n, k), each pair alone through the witness


def exported(checkpoint: Path, bundle_path: Path) -> Exported:
    witness, bundle = NumpyEncoder.from_folder(checkpoint), open_bundle(bundle_path)
    pairs = [bundle.encode(query, [ad])[0] for query, ad in reference_pairs()]
    return Exported(witness, bundle, pairs, alone(witness, pairs))


def alone(witness: NumpyEncoder, pairs: Sequence[EncodedPair]) -> Array:
    return np.concatenate([witness.logits(*padded([pair])) for pair in pairs])


def padded(pairs: Sequence[EncodedPair]) -> tuple[Integers, Integers, Integers]:
    """Token ids, mask and segments of one batch; the padding is a token that must not matter."""
    shape = len(pairs), max(pair.length_tokens for pair in pairs)
    ids, mask, types = (np.full(shape, fill, dtype=np.int64) for fill in (7, 0, 1))
    for row, pair in enumerate(pairs):
        ids[row, : pair.length_tokens] = pair.ids
        mask[row, : pair.length_tokens] = 1
        types[row, : pair.length_tokens] = pair.type_ids
    return ids, mask, types


def in_batches(
    run: Callable[[Sequence[EncodedPair]], Array | NDArray[np.float32]],
    pairs: Sequence[EncodedPair],
) -> Array:
    """Large batches in the given order, so that most pairs are padded."""
    starts = range(0, len(pairs), BATCH_PAIRS)
    parts = [run(pairs[start : start + BATCH_PAIRS]) for start in starts]
    return np.concatenate(parts).astype(np.float64)


def disturb(checkpoint: Path) -> None:
    """Give biases and normalizations, which a fresh model has at 0 and 1, values of their own."""
    import torch
    from transformers import BertForSequenceClassification

    model = BertForSequenceClassification.from_pretrained(checkpoint)
    generator = torch.Generator().manual_seed(9)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter.add_(0.3 * torch.randn(parameter.shape, generator=generator))
    model.save_pretrained(checkpoint)


def make(
    folder: Path,
    n_labels: int,
    precision: Literal["fp32", "int8"],
    seed: int = 0,
    **config: object,
) -> Exported:
    checkpoint = write_bert(folder / "checkpoint", n_labels, seed, **config)
    disturb(checkpoint)
    loaded = load_checkpoint(str(checkpoint), "1" if n_labels > 1 else None, None)
    with without_figures():
        export_bundle(loaded, quick(precision), folder / "bundle", report=lambda _: None)
    return exported(checkpoint, folder / "bundle")


@pytest.fixture(scope="module", params=[1, 2, 4], ids="{}_logits".format)
def head(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    folder = tmp_path_factory.mktemp("witness")
    return make(folder, request.param, "fp32", layer_norm_eps=EPSILON)


@pytest.fixture(scope="module")
def tiny(tiny_checkpoint: Path, tiny_bundle_fp32: Path) -> Exported:
    return exported(tiny_checkpoint, tiny_bundle_fp32)


def test_the_exported_model_gives_the_logits_of_the_equations(tiny: Exported) -> None:
    logits = np.concatenate([tiny.bundle.model.logits([pair]) for pair in tiny.pairs])
    assert np.abs(logits - tiny.expected).max() < TOLERANCE_LOGIT
    assert np.ptp(tiny.expected) > 0.1, "logits that are all alike would agree with anything"


def test_heads_of_any_size_with_biases_and_gains_give_the_logits_of_the_equations(
    head: Exported,
) -> None:
    model = head.bundle.model
    logits = np.concatenate([model.logits([pair]) for pair in head.pairs])
    assert logits.shape == head.expected.shape == (len(head.pairs), head.bundle.n_logits)
    assert np.abs(logits - head.expected).max() < TOLERANCE_LOGIT
    assert np.ptp(head.expected, axis=0).min() > 0.1


@pytest.mark.parametrize("company", ["like lengths", "as they come"])
def test_a_padded_batch_gives_what_the_equations_give_for_each_pair_alone(
    head: Exported, company: str
) -> None:
    model = head.bundle.model
    like = company == "like lengths"
    logits = bulk_logits(model, head.pairs) if like else in_batches(model.logits, head.pairs)
    assert np.abs(logits - head.expected).max() < TOLERANCE_LOGIT


def test_padding_does_not_matter_to_the_equations_either(tiny: Exported) -> None:
    together = in_batches(lambda batch: tiny.witness.logits(*padded(batch)), tiny.pairs)
    assert np.abs(together - tiny.expected).max() < 1e-12


@pytest.mark.parametrize("seed", [0, 1])
def test_row_wise_int8_keeps_the_exports_tolerances_against_the_equations(
    tiny: Exported, tiny_bundle_int8: Path, tmp_path: Path, seed: int
) -> None:
    if seed == 0:
        quantized, reference = open_bundle(tiny_bundle_int8), tiny
    else:
        reference = make(tmp_path, 1, "int8", seed=seed)
        quantized = reference.bundle
    logits = bulk_logits(quantized.model, reference.pairs)
    fidelity = compare(
        reference.expected.astype(np.float32),
        logits,
        quantized.manifest.head,
        batch_spread(quantized.model, reference.pairs[:BATCH_PAIRS]),
    )
    assert violations(fidelity.figures(), TOLERANCES["int8"]) == []
    assert fidelity.worst_logit > TOLERANCE_LOGIT, "int8 rounds: exact agreement is another graph"


def without_segments(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
    ids, mask, types = padded(batch)
    return witness.logits(ids, mask, np.zeros_like(types))


def without_mask(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
    ids, mask, types = padded(batch)
    return witness.logits(ids, np.ones_like(mask), types)


def with_tanh_gelu(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
    return replace(witness, activation=tanh_gelu).logits(*padded(batch))


def with_another_epsilon(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
    return replace(witness, epsilon=1e-12).logits(*padded(batch))


def with_heads_run_together(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
    return replace(witness, n_heads=witness.n_heads // 2).logits(*padded(batch))


def without(name: str) -> Callable[[NumpyEncoder, Sequence[EncodedPair]], Array]:
    def run(witness: NumpyEncoder, batch: Sequence[EncodedPair]) -> Array:
        gone = {name: np.zeros_like(witness.weights[name])}
        return replace(witness, weights={**witness.weights, **gone}).logits(*padded(batch))

    return run


@pytest.mark.parametrize(
    "fault",
    [
        without_segments,
        without_mask,
        with_tanh_gelu,
        with_another_epsilon,
        with_heads_run_together,
        without("bert.embeddings.position_embeddings.weight"),
        without("bert.encoder.layer.1.attention.self.query.bias"),
        without("bert.encoder.layer.0.output.LayerNorm.bias"),
        without("bert.pooler.dense.bias"),
    ],
)
def test_a_model_that_differs_in_one_thing_is_found_out(
    head: Exported, fault: Callable[[NumpyEncoder, Sequence[EncodedPair]], Array]
) -> None:
    logits = in_batches(head.bundle.model.logits, head.pairs)
    wrong = in_batches(lambda batch: fault(head.witness, batch), head.pairs)
    assert np.abs(wrong - logits).max() > TOLERANCE_LOGIT


def test_gelu_goes_through_the_normal_distribution() -> None:
    # 1.959964 is the 97.5th percentile of the standard normal distribution, as any table has it.
    x = np.array([-1.959964, 0.0, 1.959964, 40.0])
    np.testing.assert_allclose(gelu(x), x * [0.025, 0.5, 0.975, 1.0], atol=1e-7)
    assert np.abs(tanh_gelu(x) - gelu(x)).max() > 1e-5


def test_the_witness_shares_no_library_with_what_it_judges() -> None:
    tree = ast.parse(Path(numpy_encoder.__file__).read_text(encoding="utf-8"))
    imported = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert imported - sys.stdlib_module_names == {"numpy", "safetensors"}
