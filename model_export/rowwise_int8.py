"""Row-wise dynamic int8: one activation scale per token, so a pair's score ignores its batch.

ONNX Runtime's dynamic quantization takes one scale per *tensor*: the largest activation anywhere
in the batch decides how coarsely everybody's numbers are rounded, and a pair's score moves with
its batch mates. Here each row (the hidden state of one token) has its own scale, and integer
products are exact, so a row's result depends on that row alone, to the last bit.

Each `MatMul(x, W)` with constant W becomes

    scale = max(|x|, over the row) / 127                         (tokens, 1)
    q     = QuantizeLinear(x, scale, zero point 128, per row)    (tokens, in) uint8
    y     = MatMulIntegerToFloat(q, W int8, scales per column) * scale

The input's quantization is shared by all products that read it (query, key and value).

Sources: per-token activations in ZeroQuant (arXiv 2206.01861, section 4.2). Weights keep 7 bits
because x86 without VNNI adds pairs of 8 x 8 bit products in saturating 16-bit sums
(2 * 255 * 127 > 32767, but 2 * 255 * 63 < 32767): the same bundle is exact on every CPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from model_export.errors import QuantizationFailed
from model_export.to_onnx import CONTRIB_DOMAIN

WEIGHT_BITS = 7
RECIPE = f"rowwise-dynamic-u8s{WEIGHT_BITS}"

ACTIVATION_MAX = 127
ACTIVATION_ZERO = 128
SMALLEST_ROW_MAX = 1e-8  # a row of zeros must not be divided by zero


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Names of an activation's uint8 rows and of their scales."""

    values: str
    scales: str


def quantize_weight(
    weight: NDArray[np.float32], bits: int = WEIGHT_BITS
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 weights with one scale per output column.

    Args:
        weight: (in, out) float32.
        bits: Bits used, sign included; at most 8.

    Returns:
        (in, out) int8 within +-(2**(bits-1) - 1), and (out,) float32 scales.
    """
    largest = 2 ** (bits - 1) - 1
    column_max = np.abs(weight).max(axis=0)
    scales = (np.maximum(column_max, SMALLEST_ROW_MAX) / largest).astype(np.float32)
    return np.rint(weight / scales).astype(np.int8), scales


def quantize_rowwise(model: onnx.ModelProto) -> int:
    """Rewrite, in place, every MatMul whose right side is a constant matrix.

    Returns:
        How many products were rewritten.

    Raises:
        QuantizationFailed: There is none, so the graph is not what this recipe is for.
    """
    rewriter = _Rewriter(model.graph)
    rewriter.run()
    if rewriter.n_products == 0:
        raise QuantizationFailed("the graph has no MatMul with constant weights to quantize")
    return rewriter.n_products


class _Rewriter:
    """One pass over a graph's nodes, in their topological order."""

    def __init__(self, graph: onnx.GraphProto) -> None:
        self._graph = graph
        self._constants = {tensor.name: tensor for tensor in graph.initializer}
        self._nodes: list[onnx.NodeProto] = []
        self._quantized: dict[str, QuantizedRows] = {}
        self.n_products = 0

    def run(self) -> None:
        for node in self._graph.node:
            if node.op_type == "MatMul" and self._is_matrix(node.input[1]):
                self._rewrite(node)
            else:
                self._nodes.append(node)
        del self._graph.node[:]
        self._graph.node.extend(self._nodes)
        used = {name for node in self._nodes for name in node.input}
        kept = [tensor for name, tensor in self._constants.items() if name in used]
        del self._graph.initializer[:]
        self._graph.initializer.extend(kept)

    def _is_matrix(self, name: str) -> bool:
        tensor = self._constants.get(name)
        return tensor is not None and len(tensor.dims) == 2

    def _rewrite(self, node: onnx.NodeProto) -> None:
        activation, weight_name = node.input
        weight = numpy_helper.to_array(self._constants[weight_name]).astype(np.float32)
        quantized, scales = quantize_weight(weight)
        rows = self._quantize_rows(activation, n_in=weight.shape[0])
        product = self._add(
            "MatMulIntegerToFloat",
            [
                rows.values,
                self._constant(f"{weight_name}_int8", quantized),
                self._constant("rowwise_one", np.float32(1)),  # the row scale comes after
                self._constant(f"{weight_name}_scales", scales),
                self._constant("rowwise_zero", np.uint8(ACTIVATION_ZERO)),
            ],
            f"{node.output[0]}_unscaled",
            domain=CONTRIB_DOMAIN,
        )
        self._add("Mul", [product, rows.scales], node.output[0])
        self.n_products += 1

    def _quantize_rows(self, x: str, n_in: int) -> QuantizedRows:
        """Quantize an activation of shape (..., n_in) once, for all who read it."""
        if x in self._quantized:
            return self._quantized[x]
        name = f"{x}_rowwise"
        last_axis = self._constant("rowwise_last_axis", np.array([-1], dtype=np.int64))
        # max(|x|) as two reductions: a third faster than a pass that writes |x| first.
        highest = self._add("ReduceMax", [x, last_axis], f"{name}_max", keepdims=1)
        lowest = self._add("ReduceMin", [x, last_axis], f"{name}_min", keepdims=1)
        negated = self._add("Neg", [lowest], f"{name}_neg")
        floor = self._constant("rowwise_floor", np.float32(SMALLEST_ROW_MAX))
        row_max = self._add("Max", [highest, negated, floor], f"{name}_absmax")
        step = self._constant("rowwise_step", np.float32(1 / ACTIVATION_MAX))
        scales = self._add("Mul", [row_max, step], f"{name}_scales")
        # QuantizeLinear takes scales along one axis, so the rows are laid flat: reshapes are free.
        flat = self._add("Reshape", [x, self._shape(-1, n_in)], f"{name}_flat")
        flat_scales = self._add("Reshape", [scales, self._shape(-1)], f"{name}_flat_scales")
        n_rows = self._add("Shape", [flat_scales], f"{name}_n_rows")
        zero = numpy_helper.from_array(np.array([ACTIVATION_ZERO], dtype=np.uint8))
        zeros = self._add("ConstantOfShape", [n_rows], f"{name}_zeros", value=zero)
        flat_values = self._add(
            "QuantizeLinear", [flat, flat_scales, zeros], f"{name}_flat_values", axis=0
        )
        shape = self._add("Shape", [x], f"{name}_shape")
        values = self._add("Reshape", [flat_values, shape], f"{name}_values")
        self._quantized[x] = QuantizedRows(values, scales)
        return self._quantized[x]

    def _shape(self, *dims: int) -> str:
        name = "rowwise_shape_" + "x".join(str(dim) for dim in dims)
        return self._constant(name, np.array(dims, dtype=np.int64))

    def _constant(self, name: str, value: NDArray[Any] | np.generic) -> str:
        if name not in self._constants:
            self._constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def _add(
        self,
        op_type: str,
        inputs: list[str],
        output: str,
        domain: str = "",
        **attributes: Any,  # noqa: ANN401  # whatever the operator takes
    ) -> str:
        self._nodes.append(
            helper.make_node(op_type, inputs, [output], output, domain=domain, **attributes)
        )
        return output
