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
    DistilBertConfig,
    DistilBertForSequenceClassification,
)

from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.errors import UnsupportedCheckpoint
from model_export.to_onnx import CONTRIB_DOMAIN, convert
from service.scoring.encoding import PairEncoder
from service.scoring.onnx_model import OnnxModel
from tests.tiny_models import MAX_POSITIONS, write_tokenizer

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
    assert kinds["EmbedLayerNormalization"] == 1
    assert kinds["MultiHeadAttention"] == N_LAYERS
    assert kinds["SkipLayerNormalization"] == 2 * N_LAYERS
    assert kinds["BiasGelu"] == N_LAYERS
    assert kinds["MatMul"] == 6 * N_LAYERS, "query, key, value, output, up and down"
    assert not kinds.keys() & {"Softmax", "Erf", "LayerNormalization"}


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


def test_a_family_without_segments_gets_a_graph_without_them(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    config = DistilBertConfig(
        vocab_size=200, dim=32, n_layers=1, n_heads=4, hidden_dim=64, max_position_embeddings=64
    )
    torch.manual_seed(0)
    DistilBertForSequenceClassification(config).save_pretrained(tmp_path)
    checkpoint = load_checkpoint(str(tmp_path), "1", None)
    graph = convert(checkpoint.model, checkpoint.tokenizer)
    model = OnnxModel(saved(graph, tmp_path), n_logits=2)
    assert set(model.input_names) == {"input_ids", "attention_mask"}


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

    monkeypatch.setattr("optimum.exporters.onnx.onnx_export_from_model", fails)
    before = logging.getLogger().level
    with pytest.raises(UnsupportedCheckpoint, match="no such operator"):
        convert(checkpoint.model, checkpoint.tokenizer)
    assert logging.getLogger().level == before
    assert capsys.readouterr().out == ""
