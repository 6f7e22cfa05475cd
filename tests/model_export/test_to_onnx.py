from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from transformers import (
    CanineConfig,
    CanineForSequenceClassification,
)

from model_export import to_onnx
from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.errors import UnsupportedCheckpoint
from model_export.graph_editor import CONTRIB_DOMAIN
from model_export.to_onnx import convert, takes_segments
from service.scoring.encoding import PairEncoder
from service.scoring.onnx_model import OnnxModel
from tests.tiny_models import MAX_POSITIONS, WORDS, write_model

N_LAYERS = 2
TEXTS = ("red shoe", "a", "cheap blue bag, best offer " * 12, "new lamp")


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), None, None)


@pytest.fixture(scope="module")
def graph(checkpoint: Checkpoint) -> onnx.ModelProto:
    return convert(checkpoint.model, checkpoint.tokenizer)


def saved(graph: onnx.ModelProto, folder: Path) -> Path:
    path = folder / "model.onnx"
    onnx.save(graph, path)
    return path


def test_each_layer_is_fused_and_its_products_stay_apart_to_be_quantized(
    graph: onnx.ModelProto,
) -> None:
    kinds = Counter(node.op_type for node in graph.graph.node)
    assert kinds["MultiHeadAttention"] == N_LAYERS
    assert kinds["LayerNormalization"] == 1 + 2 * N_LAYERS
    assert kinds["BiasGelu"] == N_LAYERS
    assert kinds["MatMul"] == 6 * N_LAYERS, "query, key, value, output, up and down"
    assert not kinds.keys() & {"Softmax", "Erf", "SkipLayerNormalization"}


def test_for_a_gpu_all_of_a_layer_is_fused(checkpoint: Checkpoint) -> None:
    graph = convert(checkpoint.model, checkpoint.tokenizer, for_gpu=True)
    kinds = Counter(node.op_type for node in graph.graph.node)
    assert kinds["EmbedLayerNormalization"] == 1
    assert kinds["Attention"] == N_LAYERS
    assert kinds["SkipLayerNormalization"] == 2 * N_LAYERS
    assert kinds["MatMul"] == 3 * N_LAYERS, "output, up and down"


def test_the_graph_says_which_fused_operators_it_needs(graph: onnx.ModelProto) -> None:
    assert CONTRIB_DOMAIN in {opset.domain for opset in graph.opset_import}


def test_the_graph_has_the_logits_of_torch_at_any_batch_and_length(
    checkpoint: Checkpoint, graph: onnx.ModelProto, tmp_path: Path
) -> None:
    model = OnnxModel(saved(graph, tmp_path), n_logits=1, pad_id=checkpoint.pad_id)
    pairs = PairEncoder(checkpoint.backend, MAX_POSITIONS).encode("red shoe", TEXTS)
    assert {pair.length_tokens for pair in pairs} > {6, MAX_POSITIONS}
    expected = []
    for pair in pairs:
        with torch.inference_mode():
            output = checkpoint.model(
                input_ids=torch.from_numpy(pair.ids)[None],
                token_type_ids=torch.from_numpy(pair.type_ids)[None],
            )
        expected.append(output.logits[0].numpy())
    assert np.ptp(expected) > 0.1, "the pairs must differ, or any graph would do"
    for actual in (model.logits(pairs), np.concatenate([model.logits([p]) for p in pairs])):
        np.testing.assert_allclose(actual, np.stack(expected), atol=1e-5)


def converted(folder: Path, family: str, **config: Any) -> tuple[Checkpoint, onnx.ModelProto]:  # noqa: ANN401  # fields of any config
    loaded = load_checkpoint(str(write_model(folder / "model", family, **config)), None, None)
    return loaded, convert(loaded.model, loaded.tokenizer)


@pytest.mark.parametrize(
    ("family", "config", "has_segments"),
    [
        ("distilbert", {}, False),
        ("bert", {"type_vocab_size": 1}, False),
        ("roberta", {"type_vocab_size": 1}, False),
        ("roberta", {"type_vocab_size": 2}, False),  # its tokenizer lists none
        ("electra", {}, True),
    ],
)
def test_the_graph_takes_segments_where_the_model_and_its_tokenizer_have_them(
    tmp_path: Path, family: str, config: dict[str, Any], has_segments: bool
) -> None:
    loaded, graph = converted(tmp_path, family, **config)
    model = OnnxModel(saved(graph, tmp_path), n_logits=1, pad_id=loaded.pad_id)
    assert takes_segments(loaded.model, loaded.tokenizer) == has_segments
    assert ("token_type_ids" in model.input_names) == has_segments
    pairs = PairEncoder(loaded.backend, MAX_POSITIONS).encode("red shoe", TEXTS)
    with torch.inference_mode():
        for pair, logit in zip(pairs, model.logits(pairs), strict=True):
            ids = torch.from_numpy(pair.ids)[None]
            types = {"token_type_ids": torch.from_numpy(pair.type_ids)[None]}
            output = loaded.model(input_ids=ids, **(types if has_segments else {}))
            assert logit == pytest.approx(output.logits[0].numpy(), abs=1e-5)


def test_segments_that_the_tokenizers_config_leaves_out_are_zeros_as_in_transformers(
    tiny_checkpoint: Path, tmp_path: Path
) -> None:
    loaded = load_checkpoint(str(tiny_checkpoint), None, None)
    loaded.tokenizer.model_input_names = ["input_ids", "attention_mask"]
    model = OnnxModel(saved(convert(loaded.model, loaded.tokenizer), tmp_path), n_logits=1)
    assert set(model.input_names) == {"input_ids", "attention_mask"}
    [pair] = PairEncoder(loaded.backend, MAX_POSITIONS).encode("red shoe", TEXTS[:1])
    with torch.inference_mode():
        feed = loaded.tokenizer("red shoe", TEXTS[0], return_tensors="pt")
        expected = loaded.model(**feed).logits[0].numpy()
    assert model.logits([pair])[0] == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("family", ["distilbert", "roberta"])
def test_attention_is_fused_in_families_that_name_or_number_things_otherwise(
    tmp_path: Path, family: str
) -> None:
    _, graph = converted(tmp_path, family)
    kinds = Counter(node.op_type for node in graph.graph.node)
    assert kinds["MultiHeadAttention"] == N_LAYERS
    assert kinds["LayerNormalization"] == 1 + 2 * N_LAYERS
    assert kinds["MatMul"] == 6 * N_LAYERS


def test_a_graph_has_no_branches(tmp_path: Path) -> None:
    _, graph = converted(tmp_path, "deberta-v2")
    kinds = Counter(node.op_type for node in graph.graph.node)
    assert kinds["LayerNormalization"] >= 2 * N_LAYERS
    assert kinds["If"] == 0, "rewriters do not look into branches"


def test_the_mean_of_all_tokens_does_not_change_with_the_padding(tmp_path: Path) -> None:
    loaded, graph = converted(tmp_path, "modernbert", classifier_pooling="mean")
    model = OnnxModel(saved(graph, tmp_path), n_logits=1, pad_id=loaded.pad_id)
    encoder = PairEncoder(loaded.backend, MAX_POSITIONS)
    (longest,) = encoder.encode("red shoe", ["long lamp " * MAX_POSITIONS])
    pairs = encoder.encode("red shoe", [" ".join(WORDS[:n]) for n in range(1, len(WORDS))])
    alone = np.concatenate([model.logits([pair]) for pair in pairs])
    padded = np.concatenate([model.logits([pair, longest])[:1] for pair in pairs])
    np.testing.assert_array_equal(alone, padded)


def test_a_model_too_large_for_one_file_is_refused_before_it_is_traced(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(to_onnx, "MAX_GRAPH_BYTES", 10_000)
    monkeypatch.setattr("optimum.exporters.onnx.export", None)
    with pytest.raises(UnsupportedCheckpoint, match="GB of weights in fp32"):
        convert(checkpoint.model, checkpoint.tokenizer)


def test_an_architecture_that_nobody_can_convert_is_refused_by_its_name(
    checkpoint: Checkpoint,
) -> None:
    config = CanineConfig(
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=4,
        intermediate_size=32,
        num_hash_buckets=64,
    )
    with pytest.raises(UnsupportedCheckpoint, match="CanineForSequenceClassification cannot be"):
        convert(CanineForSequenceClassification(config).eval(), checkpoint.tokenizer)


def test_the_converters_keep_quiet_and_nobodys_logging_is_changed(
    checkpoint: Checkpoint, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    names = ("root", "optimum", "onnxruntime.transformers")
    before = [logging.getLogger(name).level for name in names]
    convert(checkpoint.model, checkpoint.tokenizer)
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")
    assert [record.name for record in caplog.records] == []
    assert [logging.getLogger(name).level for name in names] == before


def test_what_a_converter_prints_is_swallowed_and_logging_comes_back_after_a_failure_too(
    checkpoint: Checkpoint, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any, **__: Any) -> None:  # noqa: ANN401  # stands for an untyped function
        print("chatter")  # noqa: T201
        raise RuntimeError("no such operator")

    monkeypatch.setattr("optimum.exporters.onnx.export", fails)
    before = logging.getLogger().level
    with pytest.raises(UnsupportedCheckpoint, match="no such operator"):
        convert(checkpoint.model, checkpoint.tokenizer)
    assert logging.getLogger().level == before
    assert capsys.readouterr().out == ""
