from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import onnxruntime as ort
import pytest

from service.domain import Ad
from service.errors import InferenceFailed
from service.scoring.bulk import bulk_logits
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair
from service.scoring.onnx_model import OnnxModel
from service.startup_errors import BundleIncompatible, ProviderUnavailable

VOCABULARY = "red blue shoe bag cheap run fast a b c d e f".split()  # noqa: SIM905  # reads better


@pytest.fixture(params=["fp32", "int8"])
def bundle(
    request: pytest.FixtureRequest, tiny_bundle_fp32: Path, tiny_bundle_int8: Path
) -> Bundle:
    return open_bundle(tiny_bundle_fp32 if request.param == "fp32" else tiny_bundle_int8)


def pairs_of_every_length(bundle: Bundle, n_pairs: int = 60) -> list[EncodedPair]:
    rng = random.Random(7)  # noqa: S311  # a fixed sequence is wanted
    texts = [" ".join(rng.choices(VOCABULARY, k=rng.randint(1, 60))) for _ in range(n_pairs)]
    return [bundle.encode(rng.choice(VOCABULARY), [Ad("x", text=text)])[0] for text in texts]


def test_a_pairs_logit_is_bit_identical_alone_and_in_any_company(bundle: Bundle) -> None:
    pairs = pairs_of_every_length(bundle)
    alone = np.concatenate([bundle.model.logits([pair]) for pair in pairs])
    assert len(np.unique(alone)) > len(pairs) // 2, "the model is too dull to tell pairs apart"
    rng = random.Random(8)  # noqa: S311  # a fixed sequence is wanted
    for _ in range(20):
        company = rng.sample(range(len(pairs)), rng.randint(2, 40))
        together = bundle.model.logits([pairs[index] for index in company])
        assert np.array_equal(together, alone[company])


def test_bulk_scoring_keeps_the_order_and_every_bit(bundle: Bundle) -> None:
    pairs = pairs_of_every_length(bundle)
    alone = np.concatenate([bundle.model.logits([pair]) for pair in pairs])
    progress: list[int] = []
    together = bulk_logits(bundle.model, pairs, threads=2, on_progress=progress.append)
    assert np.array_equal(together, alone)
    assert sum(progress) == len(pairs)


def test_the_segments_matter(bundle: Bundle) -> None:
    (pair,) = bundle.encode("red shoe", [Ad("x", text="cheap red bag")])
    zeroed = EncodedPair(pair.ids, np.zeros_like(pair.type_ids), truncated=False)
    assert not np.array_equal(bundle.model.logits([pair]), bundle.model.logits([zeroed]))


def test_an_execution_provider_that_is_not_there_stops_the_start(tiny_bundle_fp32: Path) -> None:
    with pytest.raises(ProviderUnavailable, match="CUDAExecutionProvider is not available"):
        open_bundle(tiny_bundle_fp32, provider="cuda")


def test_the_libraries_of_cuda_are_loaded_from_where_pip_puts_them(
    tiny_bundle_fp32: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    monkeypatch.setattr(ort, "get_available_providers", lambda: ["CUDAExecutionProvider"])
    monkeypatch.setattr(ort, "preload_dlls", lambda: loaded.append("all"))
    file = tiny_bundle_fp32 / "model.onnx"
    # Without the device ONNX Runtime goes on with the CPU, which is refused.
    with pytest.raises(ProviderUnavailable), pytest.warns(UserWarning, match="CUDA"):
        OnnxModel(file, provider="cuda", n_logits=1)
    assert loaded == ["all"]


def test_a_file_that_is_no_graph_is_refused_by_name(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(b"no graph")
    with pytest.raises(BundleIncompatible, match=r"model\.onnx cannot be opened"):
        OnnxModel(file, n_logits=1)


def test_ids_outside_of_the_vocabulary_fail_as_our_error(bundle: Bundle) -> None:
    bad = EncodedPair(np.array([10**6]), np.array([0]), truncated=False)
    with pytest.raises(InferenceFailed, match="onnxruntime failed on 1 pairs"):
        bundle.model.logits([bad])


def test_another_number_of_outputs_than_promised_fails(tiny_bundle_int8: Path) -> None:
    model = OnnxModel(tiny_bundle_int8 / "model.onnx", n_logits=3)
    pair = EncodedPair(np.array([1, 2]), np.array([0, 0]), truncated=False)
    with pytest.raises(InferenceFailed, match=r"shape \(1, 1\), expected \(1, 3\)"):
        model.logits([pair])
