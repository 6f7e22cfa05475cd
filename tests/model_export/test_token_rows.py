from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import helper

from model_export.checkpoint import Checkpoint, load_checkpoint
from model_export.encoder_shape import encoder_shape, is_first_token
from model_export.graph_editor import GraphEditor
from model_export.parity import batch_spread
from model_export.row_attention import PADDING_LOGIT
from model_export.to_onnx import convert
from model_export.token_rows import ALL_ROWS, LEADING_ROWS, lay_out_token_rows, row_group
from service.scoring.bulk import bulk_logits
from service.scoring.encoding import EncodedPair, PairEncoder
from service.scoring.onnx_model import OnnxModel
from tests.tiny_models import MAX_POSITIONS, WORDS, write_bert, write_model

QUERY = "cheap red shoe"
ADS = ["", "bag", *(" ".join((WORDS * 3)[:n]) for n in range(2, 50))]

LAID_OUT = ("bert", "distilbert", "electra", "roberta", "xlm-roberta", "camembert", "albert")


def plain(checkpoint: Checkpoint) -> onnx.ModelProto:
    return convert(checkpoint.model, checkpoint.tokenizer)


def laid_out(checkpoint: Checkpoint) -> onnx.ModelProto:
    graph = plain(checkpoint)
    assert lay_out_token_rows(graph)
    onnx.checker.check_model(graph)
    return graph


def opened(graph: onnx.ModelProto, folder: Path, pad_id: int) -> OnnxModel:
    path = folder / "model.onnx"
    onnx.save(graph, path)
    return OnnxModel(path, n_logits=1, pad_id=pad_id)


def encoded(checkpoint: Checkpoint) -> list[EncodedPair]:
    return PairEncoder(checkpoint.backend, MAX_POSITIONS).encode(QUERY, ADS)


@pytest.fixture(scope="module")
def checkpoint(tiny_checkpoint: Path) -> Checkpoint:
    return load_checkpoint(str(tiny_checkpoint), None, None)


@pytest.mark.parametrize("family", LAID_OUT)
def test_rows_give_the_logits_of_the_graph_that_they_came_from(family: str, tmp_path: Path) -> None:
    loaded = load_checkpoint(str(write_model(tmp_path / "model", family)), None, None)
    pairs = encoded(loaded)
    before = bulk_logits(opened(plain(loaded), tmp_path, loaded.pad_id), pairs)
    after = bulk_logits(opened(laid_out(loaded), tmp_path, loaded.pad_id), pairs)
    assert float(np.ptp(before)) > 0.1, "pairs must differ for this to say anything"
    assert after == pytest.approx(before, abs=1e-5)


def test_attention_scores_of_any_size_leave_padding_without_weight(tmp_path: Path) -> None:
    """Large weights: attention is all or nothing, and logits of hundreds would drown a bias."""
    folder = write_bert(tmp_path / "model", initializer_range=3.0)
    model = opened(laid_out(load_checkpoint(str(folder), None, None)), tmp_path, 0)
    pairs = encoded(load_checkpoint(str(folder), None, None))
    assert float(np.ptp(bulk_logits(model, pairs))) > 1
    assert batch_spread(model, pairs) == 0


def test_the_weight_of_padding_is_lost_in_a_sum_of_floats() -> None:
    weight = np.float32(np.exp(PADDING_LOGIT))
    assert weight >= np.finfo(np.float32).tiny, "a denormal number would be slow"
    assert np.float32(1) + np.float32(512) * weight == np.float32(1)


def test_whatever_stands_in_the_padding_changes_nothing(
    checkpoint: Checkpoint, tmp_path: Path
) -> None:
    session = opened(laid_out(checkpoint), tmp_path, checkpoint.pad_id)._session
    short, long = encoded(checkpoint)[1], encoded(checkpoint)[-1]
    n, longest = short.length_tokens, long.length_tokens

    def logit(filler: int) -> NDArray[np.float32]:
        ids = np.full((2, longest), filler, dtype=np.int64)
        mask, types = np.zeros_like(ids), np.zeros_like(ids)
        ids[0], mask[0], types[0] = long.ids, 1, long.type_ids
        ids[1, :n], mask[1, :n], types[1, :n] = short.ids, 1, short.type_ids
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
        [output] = session.run(None, feed)
        return np.asarray(output[1])

    assert logit(0).tobytes() == logit(7).tobytes() == logit(20).tobytes()


def test_the_last_layer_computes_its_leading_tokens_only(checkpoint: Checkpoint) -> None:
    graph = laid_out(checkpoint)
    groups = row_group(graph)
    rows = [groups.get(n.output[0]) for n in graph.graph.node if n.op_type == "BiasGelu"]
    assert rows == [ALL_ROWS, LEADING_ROWS], "two layers"
    products = Counter(groups.get(n.output[0]) for n in graph.graph.node if n.op_type == "MatMul")
    assert products == {ALL_ROWS: 6 + 2, LEADING_ROWS: 4}, "keys and values are read whole"


def test_no_hidden_state_is_transposed_on_its_way_into_attention(checkpoint: Checkpoint) -> None:
    kinds = Counter(node.op_type for node in laid_out(checkpoint).graph.node)
    assert kinds["FusedMatMul"] == 2 * 2
    assert kinds["Transpose"] == 2 + 1, "on its way out, and the order of the rows"
    assert kinds["MultiHeadAttention"] == 0


@pytest.mark.parametrize("family", ["deberta-v2", "mpnet", "modernbert"])
def test_a_family_with_other_attention_is_left_as_it_was(family: str, tmp_path: Path) -> None:
    graph = plain(load_checkpoint(str(write_model(tmp_path / "model", family)), None, None))
    before = graph.SerializeToString(deterministic=True)
    assert not lay_out_token_rows(graph)
    assert graph.SerializeToString(deterministic=True) == before


def attention_of(graph: onnx.ModelProto) -> onnx.NodeProto:
    nodes: list[onnx.NodeProto] = list(graph.graph.node)
    return next(node for node in nodes if node.op_type == "MultiHeadAttention")


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: attention_of(graph).attribute.append(
            helper.make_attribute("unidirectional", 1)
        ),
        lambda graph: attention_of(graph).input.extend(["some_attention_bias"]),
        lambda graph: (
            attention_of(graph).attribute[0].CopyFrom(helper.make_attribute("num_heads", 2))
        ),
        lambda graph: attention_of(graph).input.__setitem__(4, "input_ids"),
        # Somebody reads the hidden states of a layer beside the head.
        lambda graph: graph.graph.output.append(
            helper.make_tensor_value_info(attention_of(graph).input[0], 1, None)
        ),
    ],
)
def test_anything_unknown_leaves_the_graph_as_it_was(
    checkpoint: Checkpoint, change: object
) -> None:
    graph = plain(checkpoint)
    change(graph)  # type: ignore[operator]  # a function of the list above
    before = graph.SerializeToString(deterministic=True)
    assert not lay_out_token_rows(graph)
    assert graph.SerializeToString(deterministic=True) == before


def test_the_shape_of_the_encoder_is_read_off_its_graph(checkpoint: Checkpoint) -> None:
    graph = plain(checkpoint)
    shape = encoder_shape(GraphEditor(graph.graph))
    assert shape is not None
    assert (shape.n_heads, shape.hidden, shape.root_width) == (4, 32, 32)
    del graph.graph.input[1:2]
    assert encoder_shape(GraphEditor(graph.graph)) is None, "no padding mask"


def test_only_the_first_position_of_the_token_axis_is_the_first_token() -> None:
    def gather(index: object, axis: int) -> bool:
        node = helper.make_node("Gather", ["x", "i"], ["y"], axis=axis)
        graph = helper.make_graph([node], "g", [], [])
        editor = GraphEditor(graph)
        editor.constant("i", np.asarray(index, dtype=np.int64))
        return is_first_token(editor, node)

    assert gather(0, 1)
    assert not gather(1, 1)
    assert not gather(0, 0)
    assert not gather([0], 1)
