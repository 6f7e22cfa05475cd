"""Row-wise dynamic int8: one activation scale per token, so a pair's score ignores its batch.

ONNX Runtime's dynamic quantization takes one scale per *tensor*: the largest activation anywhere
in the batch decides how coarsely everybody's numbers are rounded, and a pair's score moves with
its batch mates. Here each row (the hidden state of one token) has its own scale, and integer
products are exact, so a row's result depends on that row alone, to the last bit.

Each `MatMul(x, W)` with constant W becomes

    scale = max(|x|, over the row) / 127                         (tokens, 1)
    q     = QuantizeLinear(x, scale, zero point 128, per row)    (tokens, in) uint8
    y     = MatMulIntegerToFloat(q, W int8, scales per column) * scale

What GELU gives is never below -0.17, so its rows are spread over more of the 256 steps: zero point
48, scale = max(max(x) / 207, 0.17 / 48). The input's quantization is shared by all products that
read it (query, key and value). What comes after the first token was taken, on one row a pair, stays
in fp32: it costs nothing.

A row with a NaN in it gives NaN only if its scale does, which ReduceMax decides. Behind a layer
normalization, which makes a whole row NaN, it does.

Sources: per-token activations in ZeroQuant (arXiv 2206.01861, section 4.2). Weights keep 7 bits
unless the target multiplies 8 x 8 bits exactly: x86 without VNNI adds pairs of products in
saturating 16-bit sums (2 * 255 * 127 > 32767, but 2 * 255 * 63 < 32767).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from model_export.encoder_shape import is_first_token
from model_export.errors import QuantizationFailed
from model_export.graph_editor import CONTRIB_DOMAIN, GraphEditor
from model_export.token_rows import row_group

WEIGHT_BITS = 7  # exact on every CPU

CLIP_RATIOS = np.linspace(1.0, 0.8, 21)  # of a column's largest weight; none won under 0.8 here

SMALLEST_COLUMN_MAX = 1e-8  # a column of zeros must not be divided by zero

LOWEST_GELU = -0.17  # its minimum is -0.16997, near x = -0.75
_GELUS = frozenset({"BiasGelu", "FastGelu", "Gelu"})


@dataclass(frozen=True, slots=True)
class RowRange:
    """How the numbers of a row are laid on 0-255.

    Attributes:
        zero: The integer that stands for 0.
        lowest: No number of any row is below it; None where rows reach as far down as up.
    """

    zero: int
    lowest: float | None

    @property
    def steps_up(self) -> int:
        """Steps between 0 and the row's largest number."""
        return 127 if self.lowest is None else 255 - self.zero


BOTH_SIDES = RowRange(zero=128, lowest=None)
AFTER_GELU = RowRange(zero=48, lowest=LOWEST_GELU)


@dataclass(frozen=True, slots=True)
class QuantizedRows:
    """Names of an activation's uint8 rows and of their scales, and the rows' range."""

    values: str
    scales: str
    range: RowRange


def recipe_name(weight_bits: int) -> str:
    """What the manifest calls this recipe."""
    return f"rowwise-dynamic-u8s{weight_bits}"


def quantize_weight(
    weight: NDArray[np.float32], bits: int = WEIGHT_BITS
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Symmetric int8 weights with one scale per output column.

    A column's largest weight is often alone: cutting it a little short makes the steps finer for
    all others. The scale with the least squared error is taken, of those in `CLIP_RATIOS`.

    Args:
        weight: (in, out) float32.
        bits: Bits used, sign included; at most 8.

    Returns:
        (in, out) int8 within +-(2**(bits-1) - 1), and (out,) float32 scales.
    """
    largest = 2 ** (bits - 1) - 1
    column_max = np.maximum(np.abs(weight).max(axis=0), SMALLEST_COLUMN_MAX)
    values = np.zeros(weight.shape, dtype=np.int8)
    scales = np.zeros(weight.shape[1], dtype=np.float32)
    least = np.full(weight.shape[1], np.inf)
    for ratio in CLIP_RATIOS:  # without clipping first, so that it wins where nothing is better
        candidate = (column_max * ratio / largest).astype(np.float32)
        steps = np.clip(np.rint(weight / candidate), -largest, largest)
        error = np.square(steps * candidate - weight).sum(axis=0)
        better = error < least
        values[:, better] = steps[:, better]
        scales[better], least[better] = candidate[better], error[better]
    return values, scales


def quantize_rowwise(model: onnx.ModelProto, weight_bits: int = WEIGHT_BITS) -> int:
    """Rewrite, in place, every MatMul of token rows with a constant matrix.

    Args:
        model: fp32 graph, best laid out by `token_rows`.
        weight_bits: 7, or 8 for a target whose 8 x 8 bit products are exact.

    Returns:
        How many products were rewritten.

    Raises:
        QuantizationFailed: There is none, so the graph is not what this recipe is for.
    """
    rewriter = _Rewriter(GraphEditor(model.graph), row_group(model), weight_bits)
    n_products = rewriter.run()
    if n_products == 0:
        raise QuantizationFailed("the graph has no MatMul with constant weights to quantize")
    return n_products


class _Rewriter:
    """One pass over a graph's nodes, in their topological order."""

    def __init__(self, editor: GraphEditor, row_groups: dict[str, str], weight_bits: int) -> None:
        self._editor = editor
        self._row_groups = row_groups
        self._weight_bits = weight_bits
        self._quantized: dict[str, QuantizedRows] = {}
        self._zeros: dict[tuple[str, int], str] = {}
        self._in_head: set[str] = set()

    def run(self) -> int:
        n_products = 0
        for node in self._editor.old_nodes:
            if is_first_token(self._editor, node) or self._in_head.intersection(node.input):
                self._in_head.update(node.output)
                self._editor.keep(node)
            elif node.op_type == "MatMul" and self._is_matrix(node.input[1]):
                self._rewrite(node)
                n_products += 1
            else:
                self._editor.keep(node)
        self._editor.finish()
        return n_products

    def _is_matrix(self, name: str) -> bool:
        dims = self._editor.constant_dims(name)
        return dims is not None and len(dims) == 2

    def _rewrite(self, node: onnx.NodeProto) -> None:
        editor = self._editor
        activation, weight_name = node.input
        [n_in, _] = editor.constant_dims(weight_name) or ()
        values, scales = self._quantize_weight(weight_name)
        rows = self._quantize_rows(activation, n_in)
        product = editor.add(
            "MatMulIntegerToFloat",
            [
                rows.values,
                values,
                editor.constant("rowwise_one", np.float32(1)),  # the row scale comes after
                scales,
                editor.constant(f"rowwise_zero_{rows.range.zero}", np.uint8(rows.range.zero)),
            ],
            f"{node.output[0]}_unscaled",
            CONTRIB_DOMAIN,
        )
        editor.add("Mul", [product, rows.scales], node.output[0])

    def _quantize_weight(self, name: str) -> tuple[str, str]:
        """Names of the integers and of their scales; layers that share a matrix share these."""
        values, scales = f"{name}_int8", f"{name}_scales"
        if not self._editor.has_constant(values):
            weight = self._editor.value(name)
            assert weight is not None  # noqa: S101  # `_is_matrix` saw that it is constant
            made = quantize_weight(weight.astype(np.float32), self._weight_bits)
            self._editor.constant(values, made[0])
            self._editor.constant(scales, made[1])
        return values, scales

    def _quantize_rows(self, x: str, n_in: int) -> QuantizedRows:
        """Quantize an activation of shape (..., n_in) once, for all who read it."""
        if x not in self._quantized:
            producer = self._editor.producer(x)
            after_gelu = producer is not None and producer.op_type in _GELUS
            row_range = AFTER_GELU if after_gelu else BOTH_SIDES
            scales = self._row_scales(x, row_range)
            self._quantized[x] = QuantizedRows(
                self._to_uint8(x, scales, row_range, n_in), scales, row_range
            )
        return self._quantized[x]

    def _row_scales(self, x: str, row_range: RowRange) -> str:
        """(..., 1): one step of each row.

        A row of zeros has scale 0. What QuantizeLinear then makes of 0 / 0 does not matter, since
        the product is multiplied by that scale again, and integers are finite.
        """
        editor = self._editor
        last = editor.constant("rowwise_last_axis", np.array([-1], dtype=np.int64))
        name = f"{x}_rowwise"
        step = np.float32(1 / row_range.steps_up)
        step_name = editor.constant(f"rowwise_step_{row_range.steps_up}", step)
        if row_range.lowest is None:
            sizes = editor.add("Abs", [x], f"{name}_abs")
            largest = editor.add("ReduceMax", [sizes, last], f"{name}_max", keepdims=1)
            return editor.add("Mul", [largest, step_name], f"{name}_scales")
        largest = editor.add("ReduceMax", [x, last], f"{name}_max", keepdims=1)
        scaled = editor.add("Mul", [largest, step_name], f"{name}_by_max")
        floor = np.float32(-row_range.lowest / row_range.zero)  # so that the lowest fits too
        return editor.add(
            "Max", [scaled, editor.constant("rowwise_floor", floor)], f"{name}_scales"
        )

    def _to_uint8(self, x: str, scales: str, row_range: RowRange, n_in: int) -> str:
        """The rows as uint8. QuantizeLinear takes scales along one axis, so rows must lie flat."""
        editor, name = self._editor, f"{x}_rowwise"
        flat_scales = editor.add("Reshape", [scales, self._shape(-1)], f"{name}_flat_scales")
        group = self._row_groups.get(x)
        zeros = self._zeros_of(flat_scales, group or x, row_range.zero)
        if group is not None:
            return editor.add("QuantizeLinear", [x, flat_scales, zeros], f"{name}_values", axis=0)
        flat = editor.add("Reshape", [x, self._shape(-1, n_in)], f"{name}_flat")
        flat_values = editor.add(
            "QuantizeLinear", [flat, flat_scales, zeros], f"{name}_flat_values", axis=0
        )
        shape = editor.add("Shape", [x], f"{name}_shape")
        return editor.add("Reshape", [flat_values, shape], f"{name}_values")

    def _zeros_of(self, flat_scales: str, group: str, zero: int) -> str:
        """The zero point of each row; made once for all tensors with the same rows."""
        key = (group, zero)
        if key not in self._zeros:
            name = f"{flat_scales}_zeros"
            n_rows = self._editor.add("Shape", [flat_scales], f"{name}_shape")
            value = numpy_helper.from_array(np.array([zero], dtype=np.uint8))
            self._zeros[key] = self._editor.add("ConstantOfShape", [n_rows], name, value=value)
        return self._zeros[key]

    def _shape(self, *dims: int) -> str:
        name = "rowwise_shape_" + "x".join(str(dim) for dim in dims)
        return self._editor.constant(name, np.array(dims, dtype=np.int64))
