"""Every family of encoders through the whole export, and out of the bundle with torch's scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.export import export_bundle
from model_export.pair_length import longest_pair
from model_export.to_onnx import convert
from service.domain import Ad
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.calibration import Identity, to_scores
from service.scoring.encoding import EncodedPair, PairEncoder
from service.scoring.golden_pairs import self_test
from service.scoring.onnx_model import OnnxModel
from tests.export_options import quick, without_figures
from tests.tiny_models import FAMILIES, MAX_POSITIONS, write_model

# Each family as it is published, and what single checkpoints of a family have otherwise.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    **{family: (family, {}) for family in FAMILIES},
    "modernbert, mean of all tokens": ("modernbert", {"classifier_pooling": "mean"}),
    "deberta-v2 with segments": ("deberta-v2", {"type_vocab_size": 2}),
}
WITH_SEGMENTS = {"deberta-v2 with segments"} | {
    name for name, family in FAMILIES.items() if family.has_segments
}
WITHOUT_POSITION_TABLE = ("deberta-v2", "modernbert")  # relative and rotary positions

QUERY = "red shoe"
ADS = ("blue shoe", "cheap red bag, best offer", "lamp", "Fast run! Buy 2 new chairs")
LONG_TEXT = "cheap blue bag best offer new lamp " * 40

# Measured on these models: at most .08, against logits that differ by .25 and more.
INT8_LOGIT_TOLERANCE = 0.1


@dataclass(frozen=True)
class Exported:
    """A variant after its export."""

    variant: str
    checkpoint: Checkpoint
    bundle: Bundle


@pytest.fixture(scope="module", params=VARIANTS)
def exported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Exported once for all tests of this file; raises where parity fails."""
    family, config = VARIANTS[request.param]
    folder = tmp_path_factory.mktemp("family")
    checkpoint = load_checkpoint(str(write_model(folder / family, family, **config)), None, None)
    with without_figures():
        export_bundle(checkpoint, quick("int8"), folder / "bundle", report=lambda _: None)
    return Exported(request.param, checkpoint, open_bundle(folder / "bundle"))


def torch_logit(checkpoint: Checkpoint, **inputs: torch.Tensor) -> float:
    with torch.inference_mode():
        return float(checkpoint.model(**inputs).logits[0, 0])


def as_tensors(exported: Exported, pair: EncodedPair) -> dict[str, torch.Tensor]:
    tensors = {"input_ids": torch.from_numpy(pair.ids)[None]}
    if exported.variant in WITH_SEGMENTS:
        tensors["token_type_ids"] = torch.from_numpy(pair.type_ids)[None]
    return tensors


def logits_of(exported: Exported, pairs: list[EncodedPair]) -> NDArray[np.float32]:
    return exported.bundle.model.logits(pairs)[:, 0]


def test_the_bundle_proves_itself_again_from_disk(exported: Exported) -> None:
    assert self_test(exported.bundle) == 0, "same machine, same graph"
    parity = exported.bundle.manifest.parity
    assert parity["fp32"]["worst_logit"] < 1e-4
    assert parity["int8"]["mean_score"] > 0, "int8 without any difference was not int8"
    assert parity["fp32"]["batch_spread"] == parity["int8"]["batch_spread"] == 0


def test_segment_ids_are_fed_exactly_where_the_model_has_segments(exported: Exported) -> None:
    names = {"input_ids", "attention_mask"}
    expected = names | {"token_type_ids"} if exported.variant in WITH_SEGMENTS else names
    assert set(exported.bundle.manifest.inputs.names) == expected


def test_a_pair_is_encoded_as_its_own_tokenizer_does_it(exported: Exported) -> None:
    for pair, text in zip(exported.bundle.encode(QUERY, ads(*ADS)), ADS, strict=True):
        theirs = exported.checkpoint.tokenizer(QUERY, text)
        assert pair.ids.tolist() == theirs["input_ids"]
        if exported.variant in WITH_SEGMENTS and "token_type_ids" in theirs:
            assert pair.type_ids.tolist() == theirs["token_type_ids"]


def test_pairs_score_as_in_torch_and_unlike_each_other(exported: Exported) -> None:
    pairs = exported.bundle.encode(QUERY, ads(*ADS, LONG_TEXT))
    expected = [torch_logit(exported.checkpoint, **as_tensors(exported, pair)) for pair in pairs]
    np.testing.assert_allclose(logits_of(exported, pairs), expected, atol=INT8_LOGIT_TOLERANCE)
    assert np.ptp(expected) > 2 * INT8_LOGIT_TOLERANCE, "or any graph would do"


def test_the_longest_pair_runs_and_no_token_more_would(exported: Exported) -> None:
    limit = longest_pair(exported.checkpoint.model, exported.checkpoint.tokenizer)
    assert limit == exported.bundle.manifest.inputs.max_length_tokens == MAX_POSITIONS
    (pair,) = exported.bundle.encode(LONG_TEXT, ads(LONG_TEXT))
    assert pair.length_tokens == limit
    expected = torch_logit(exported.checkpoint, **as_tensors(exported, pair))
    (logit,) = logits_of(exported, [pair])
    assert logit == pytest.approx(expected, abs=INT8_LOGIT_TOLERANCE)
    if exported.variant.split()[0].rstrip(",") not in WITHOUT_POSITION_TABLE:
        ids = torch.from_numpy(np.append(pair.ids, pair.ids[-1]))[None]
        with pytest.raises((IndexError, RuntimeError)):
            torch_logit(exported.checkpoint, input_ids=ids)


def ads(*texts: str) -> list[Ad]:
    return [Ad(str(number), text=text) for number, text in enumerate(texts)]


NLI = {0: "contradiction", 1: "entailment", 2: "neutral"}
ESCI = {0: "exact", 1: "substitute", 2: "complement", 3: "irrelevant"}


def probabilities(checkpoint: Checkpoint) -> NDArray[np.float64]:
    """(ads, k) softmax of torch's logits, by transformers' own tokenization."""
    inputs = checkpoint.tokenizer([QUERY] * len(ADS), ADS, padding=True, return_tensors="pt")
    with torch.inference_mode():
        logits = checkpoint.model(**inputs).logits.double()
    return np.asarray(logits.softmax(dim=1))


@pytest.mark.parametrize(
    ("labels", "relevant", "grades", "weights"),
    [
        (["irrelevant", "relevant"], None, None, [0, 1]),
        (["relevant", "irrelevant"], None, None, [1, 0]),
        (list(NLI.values()), "entailment", None, [0, 1, 0]),
        (list(NLI.values()), None, "contradiction,neutral,entailment", [0, 1, 0.5]),
        (list(ESCI.values()), None, None, [1, 2 / 3, 1 / 3, 0]),
        (["0", "1", "2", "3", "4"], None, None, [0, 0.25, 0.5, 0.75, 1]),
    ],
)
def test_each_kind_of_head_scores_the_probability_that_it_stands_for(
    tmp_path: Path, labels: list[str], relevant: str | None, grades: str | None,
    weights: list[float],
) -> None:  # fmt: skip
    named = dict(enumerate(labels))
    folder = write_model(tmp_path / "bert", "bert", id2label=named, n_labels=len(labels))
    checkpoint = load_checkpoint(str(folder), relevant, None, grades=grades)
    path = tmp_path / "model.onnx"
    onnx.save(convert(checkpoint.model, checkpoint.tokenizer), path)
    model = OnnxModel(path, n_logits=len(labels), pad_id=checkpoint.pad_id)
    encoder = PairEncoder(checkpoint.backend, checkpoint.max_length_tokens)
    scores = to_scores(model.logits(encoder.encode(QUERY, ADS)), checkpoint.head, Identity())
    np.testing.assert_allclose(scores, probabilities(checkpoint) @ weights, atol=1e-5)
    assert np.ptp(scores) > 0.01, "or any head would do"


def test_a_head_of_several_classes_goes_through_the_whole_export(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "nli", "bert", n_labels=3, id2label=NLI)
    checkpoint = load_checkpoint(str(folder), "entailment", None)
    export_bundle(checkpoint, quick("int8"), tmp_path / "bundle", report=lambda _: None)
    bundle = open_bundle(tmp_path / "bundle")
    assert bundle.manifest.head == checkpoint.head
    scores = bundle.to_scores(bundle.model.logits(bundle.encode(QUERY, ads(*ADS))))
    np.testing.assert_allclose(scores, probabilities(checkpoint)[:, 1], atol=0.03)
