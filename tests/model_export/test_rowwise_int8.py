from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic

from model_export.errors import QuantizationFailed
from model_export.parity import batch_spread
from model_export.reference_pairs import reference_pairs
from model_export.rowwise_int8 import (
    AFTER_GELU,
    BOTH_SIDES,
    quantize_rowwise,
    quantize_weight,
)
from service.domain import Ad
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.encoding import EncodedPair
from service.scoring.onnx_model import OnnxModel

N_IN, N_OUT = 24, 16


def product_graph(weight: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> onnx.ModelProto:
    """y = x W and z = x V, for rows of x in a batch of sequences."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", "t", N_IN])
    outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "z")]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("MatMul", ["x", "v"], ["z"]),
    ]
    constants = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(-weight, "v")]
    graph = helper.make_graph(nodes, "product", [x], outputs, constants)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def run(
    model: onnx.ModelProto, x: np.ndarray[tuple[int, ...], np.dtype[np.float32]]
) -> list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, {"x": x}))


@pytest.fixture
def weight() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(3).normal(size=(N_IN, N_OUT)).astype(np.float32)


def quantized(weight: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> onnx.ModelProto:
    model = product_graph(weight)
    assert quantize_rowwise(model) == 2
    return model


@pytest.mark.parametrize(("bits", "largest"), [(7, 63), (8, 127)])
def test_weights_use_all_their_bits(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]], bits: int, largest: int
) -> None:
    values, scales = quantize_weight(weight, bits)
    assert (np.abs(values).max(axis=0) == largest).all()
    assert np.abs(values * scales - weight).max() < 0.2 * np.abs(weight).max()


def test_a_lone_large_weight_is_cut_short_for_the_sake_of_the_others() -> None:
    weight = np.random.default_rng(5).normal(size=(4000, 1)).astype(np.float32)
    weight[0] = 1.1 * np.abs(weight).max()
    values, scales = quantize_weight(weight)
    assert values[0] == 63
    assert scales[0] * 63 < 0.97 * weight[0]


def test_a_graph_after_gelu_spends_its_steps_on_the_side_that_gelu_has() -> None:
    assert AFTER_GELU.steps_up > 1.5 * BOTH_SIDES.steps_up
    x = np.linspace(-6, 6, 4 * N_IN, dtype=np.float32).reshape(1, 4, N_IN)
    weight = np.eye(N_IN, dtype=np.float32)
    model = product_graph(weight)
    gelu = helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft")
    model.graph.node.insert(0, gelu)
    for node in list(model.graph.node)[1:]:
        node.input[0] = "g"
    [exact, _] = run(model, x)
    quantize_rowwise(model)
    kinds = Counter(node.op_type for node in model.graph.node)
    assert kinds["ReduceMax"] == 1
    assert kinds["Abs"] == 0
    [y, _] = run(model, x)
    steps = np.maximum(exact.max(axis=-1, keepdims=True) / AFTER_GELU.steps_up, 0.17 / 48)
    assert (np.abs(y - exact) <= 0.51 * steps).all()


def test_a_column_of_zeros_stays_zero() -> None:
    values, scales = quantize_weight(np.zeros((4, 2), dtype=np.float32))
    assert not values.any()
    assert (scales > 0).all()


def test_the_product_is_close_to_the_exact_one(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    x = np.random.default_rng(4).normal(size=(3, 5, N_IN)).astype(np.float32)
    y, z = run(quantized(weight), x)
    exact = x @ weight
    assert np.abs(y - exact).max() < 0.03 * np.abs(exact).max()
    assert np.array_equal(y, -z)


def test_the_readers_of_one_activation_share_its_quantization(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    kinds = Counter(node.op_type for node in quantized(weight).graph.node)
    assert kinds["MatMulIntegerToFloat"] == 2
    assert kinds["QuantizeLinear"] == 1
    assert kinds["MatMul"] == 0


@given(st.integers(0, 2**32 - 1), st.floats(1e-3, 1e4))
def test_a_row_ignores_how_large_its_neighbours_are(seed: int, factor: float) -> None:
    rng = np.random.default_rng(seed)
    model = quantized(rng.normal(size=(N_IN, N_OUT)).astype(np.float32))
    x = rng.normal(size=(2, 3, N_IN)).astype(np.float32)
    scaled = x.copy()
    scaled[1] *= np.float32(factor)
    assert np.array_equal(run(model, x)[0][0], run(model, scaled)[0][0])


def test_a_row_of_zeros_gives_zeros(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    y, _ = run(quantized(weight), np.zeros((1, 2, N_IN), dtype=np.float32))
    assert not y.any()


def test_a_graph_without_products_is_refused() -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "relu", [x], [y])
    with pytest.raises(QuantizationFailed, match="no MatMul"):
        quantize_rowwise(helper.make_model(graph))


def test_the_usual_dynamic_recipe_has_the_batch_spread_that_ours_has_not(
    tiny_bundle_fp32: Path, tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    bundle = open_bundle(tiny_bundle_int8)
    texts = ["red shoe", "cheap blue bag " * 4, "x y z", "run fast buy best offer " * 8, "a"]
    pairs = [bundle.encode("red shoe", [Ad("1", text=text)])[0] for text in texts]
    usual = tmp_path / "dynamic.onnx"
    quantize_dynamic(
        tiny_bundle_fp32 / "model.onnx",
        usual,
        weight_type=QuantType.QInt8,
        extra_options={"DefaultTensorType": TensorProto.FLOAT},
    )
    assert batch_spread(bundle.model, pairs) == 0
    assert batch_spread(OnnxModel(usual, n_logits=1), pairs) > 1e-3


finite = st.floats(-1e4, 1e4, width=32)


@given(arrays(np.float32, array_shapes(min_dims=2, max_dims=2, max_side=8), elements=finite))
def test_no_column_is_farther_off_than_if_its_largest_weight_were_kept(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    values, scales = quantize_weight(weight)
    assert values.dtype == np.int8
    assert np.abs(values).max() <= 63
    assert scales.shape == (weight.shape[1],)
    error = np.square(values * scales.astype(np.float64) - weight).sum(axis=0)
    step = np.maximum(np.abs(weight).max(axis=0), 1e-8).astype(np.float64) / 63
    plain = np.square(np.rint(weight / step) * step - weight).sum(axis=0)
    assert (error <= plain * 1.001 + np.square(step) * 1e-6).all()
    assert (scales <= step * 1.0001).all()
    assert (scales >= step * 0.7999).all()


def test_the_largest_possible_sums_do_not_saturate_on_any_cpu() -> None:
    weight = np.full((N_IN, N_OUT), 2.0, dtype=np.float32)
    x = np.full((1, 3, N_IN), 5.0, dtype=np.float32)
    model = quantized(weight)
    y, _ = run(model, x)
    np.testing.assert_allclose(y, N_IN * 10.0, rtol=1e-5)
    integers = [t for t in model.graph.initializer if t.data_type == TensorProto.INT8]
    largest = max(int(np.abs(numpy_helper.to_array(t).astype(int)).max()) for t in integers)
    assert 2 * 255 * largest <= np.iinfo(np.int16).max, "this machine may not saturate; others do"


def test_a_row_of_zeros_among_others_gives_zeros_and_leaves_them_alone(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    x = np.random.default_rng(5).normal(size=(2, 3, N_IN)).astype(np.float32)
    model = quantized(weight)
    full = run(model, x)[0]
    x[0, 1] = 0
    y = run(model, x)[0]
    assert not y[0, 1].any()
    assert np.isfinite(y).all()
    full[0, 1] = 0
    assert np.array_equal(y, full)


def test_products_of_two_activations_and_weights_with_other_readers_are_left_alone(
    weight: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    model = product_graph(weight)
    model.graph.node.extend(
        [
            helper.make_node("Transpose", ["z"], ["z_turned"], perm=[0, 2, 1]),
            helper.make_node("MatMul", ["y", "z_turned"], ["scores"]),
            helper.make_node("ReduceSum", ["w"], ["total"], keepdims=0),
        ]
    )
    model.graph.output.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, None))
    model.graph.output.append(helper.make_tensor_value_info("total", TensorProto.FLOAT, None))
    assert quantize_rowwise(model) == 2
    assert [n.output[0] for n in model.graph.node if n.op_type == "MatMul"] == ["scores"]
    names = {tensor.name for tensor in model.graph.initializer}
    assert "w" in names, "ReduceSum still reads it"
    assert "v" not in names, "only its int8 form is used"
    total = run(model, np.ones((1, 2, N_IN), dtype=np.float32))[3]
    assert total == pytest.approx(weight.sum(), rel=1e-4)


def test_every_product_of_a_real_graph_is_quantized_and_attention_shares_its_input(
    tiny_bundle_fp32: Path,
) -> None:
    model = onnx.load(tiny_bundle_fp32 / "model.onnx")
    before = Counter(node.op_type for node in model.graph.node)
    n_products = quantize_rowwise(model)
    onnx.checker.check_model(model)
    after = Counter(node.op_type for node in model.graph.node)
    n_layers = before["Softmax"]
    assert n_products == before["MatMul"] == 6 * n_layers
    assert after["MatMul"] == 0
    assert after["MatMulIntegerToFloat"] == n_products
    # Query, key and value read one quantization; the last layer's queries are fewer rows.
    assert after["QuantizeLinear"] == 4 * n_layers + 1
    assert after["ConstantOfShape"] == 4, "zero points: of all rows and of the leading, twice"
    integers = [t for t in model.graph.initializer if t.data_type == TensorProto.INT8]
    assert len(integers) == n_products
    assert max(int(np.abs(numpy_helper.to_array(t)).max()) for t in integers) == 63


N_COMPANY = 60


@cache
def alone(
    path: Path,
) -> tuple[Bundle, list[EncodedPair], np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    """Pairs of all lengths, the awkward ones too, with the logits that each has by itself."""
    bundle = open_bundle(path)
    pairs = [bundle.encode(query, [ad])[0] for query, ad in reference_pairs(N_COMPANY)]
    return bundle, pairs, np.concatenate([bundle.model.logits([pair]) for pair in pairs])


@pytest.mark.parametrize("precision", ["fp32", "int8"])
@given(st.lists(st.integers(0, N_COMPANY - 1), min_size=2, max_size=40))
def test_a_pair_alone_and_in_company_has_the_same_logits(
    tiny_bundle_fp32: Path, tiny_bundle_int8: Path, precision: str, company: list[int]
) -> None:
    bundle, pairs, expected = alone(tiny_bundle_fp32 if precision == "fp32" else tiny_bundle_int8)
    logits = bundle.model.logits([pairs[index] for index in company])
    assert np.array_equal(logits, expected[company])
