"""The ways to quantize one graph that `bench_recipes` compares, each by the tool that brings it.

All of them quantize the same products, the `MatMul`s with constant weights, so that they differ in
how and not in what; only the rows named for the tool's defaults take what the tool takes. Two rows
show what the graph's layout alone does, and two start from the graph that ONNX Runtime's optimizer
gives by itself.
"""

from __future__ import annotations

import importlib
import math
import platform
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from onnxruntime.quantization import (
    CalibrationDataReader,
    CalibrationMethod,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from model_export.rowwise_int8 import quantize_rowwise
from service.scoring.encoding import EncodedPair
from service.scoring.onnx_model import IDS, MASK, TYPE_IDS

FP32 = "fp32"
FP32_ROWS = "fp32, token rows (ours)"
FP32_USUAL = "fp32, usual fusions"
IN_FLOAT = frozenset({FP32, FP32_ROWS, FP32_USUAL})
PER_TENSOR = "dynamic, per tensor"
ROW_WISE = "row-wise (ours)"

# Of what no type is stated for: shape inference does not see through the fused operators.
TYPES_UNKNOWN = {"DefaultTensorType": TensorProto.FLOAT}


class RecipeUnavailable(Exception):
    """The tool of a recipe is not installed, or does nothing with this graph."""


@dataclass(frozen=True, slots=True)
class Sources:
    """What the recipes work on.

    Attributes:
        fp32: File of the fused graph; every product has a name, and what it reads and writes has
            a type.
        rows: File of the same graph, laid out in token rows.
        usual: File of the graph as ONNX Runtime's optimizer fuses it by itself, attention with its
            projections, normalizations with the sums before them.
        products: Names of the products with constant weights.
        range_pairs: Pairs on which static ranges are measured; none of them is judged.
        reduce_range: Weights get 7 bits where 8 would saturate on this processor.
    """

    fp32: Path
    rows: Path
    usual: Path
    products: tuple[str, ...]
    range_pairs: Sequence[EncodedPair]
    reduce_range: bool


def constant_products(graph: onnx.ModelProto) -> list[onnx.NodeProto]:
    """The float products with constant weights: what a recipe quantizes."""
    matrices = {tensor.name for tensor in graph.graph.initializer if len(tensor.dims) == 2}
    return [
        node for node in graph.graph.node if node.op_type == "MatMul" and node.input[1] in matrices
    ]


def weights_need_seven_bits(cpu: str, machine: str = platform.machine()) -> bool:
    """Whether sums of 8 x 8 bit products saturate, by the processor's name and instructions.

    Source: "reduce_range" in ONNX Runtime's guide to quantization: x86 without VNNI.
    """
    return machine in ("x86_64", "AMD64") and "vnni" not in cpu


def _dynamic_defaults(source: Path, sources: Sources, out: Path) -> None:
    """As it is shipped: embeddings, pooler and head are quantized too."""
    quantize_dynamic(
        source,
        out,
        weight_type=QuantType.QInt8,
        reduce_range=sources.reduce_range,
        extra_options=TYPES_UNKNOWN,
    )


def _dynamic(source: Path, sources: Sources, out: Path, *, per_channel: bool) -> None:
    quantize_dynamic(
        source,
        out,
        nodes_to_quantize=list(sources.products),
        per_channel=per_channel,
        weight_type=QuantType.QInt8,
        reduce_range=sources.reduce_range,
        extra_options=TYPES_UNKNOWN,
    )


def _static(sources: Sources, out: Path) -> None:
    """Fixed ranges, QDQ format, MinMax: the tool's defaults but for two things.

    Weights have a scale per channel, as ours have; and activations are unsigned, since x86 runs
    only two thirds of these products in integers when they are signed.
    """
    inputs = [node.name for node in onnx.load(sources.fp32).graph.input]
    quantize_static(
        sources.fp32,
        out,
        _Feeds(sources.range_pairs, inputs),
        quant_format=QuantFormat.QDQ,
        nodes_to_quantize=list(sources.products),
        per_channel=True,
        reduce_range=sources.reduce_range,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        calibrate_method=CalibrationMethod.MinMax,
        extra_options=TYPES_UNKNOWN,
    )


def _copy(source: Path, out: Path) -> None:
    shutil.copyfile(source, out)


def _row_wise(sources: Sources, out: Path) -> None:
    graph = onnx.load(sources.rows)
    quantize_rowwise(graph)
    onnx.save(graph, out)


def _zeroquant(sources: Sources, out: Path) -> None:
    """The pass of the same idea that onnxsim brings, with the largest groups that fit."""
    try:
        onnxsim: Any = importlib.import_module("onnxsim")
    except ImportError as error:
        raise RecipeUnavailable("onnxsim is not installed") from error
    if not hasattr(onnxsim, "apply_zeroquant"):
        raise RecipeUnavailable("this version of onnxsim has no apply_zeroquant")
    graph = onnx.load(sources.fp32)
    products = constant_products(graph)
    rows = {tensor.name: tensor.dims[0] for tensor in graph.graph.initializer if tensor.dims}
    group = math.gcd(*(rows[node.input[1]] for node in products))
    quantized = onnxsim.apply_zeroquant(graph, block_size=group)
    if len(constant_products(quantized)) == len(products):  # it says nothing then
        raise RecipeUnavailable("onnxsim's apply_zeroquant changes nothing in this graph")
    onnx.save(quantized, out)


RECIPES: dict[str, Callable[[Sources, Path], None]] = {
    FP32_USUAL: lambda sources, out: _copy(sources.usual, out),
    "dynamic, usual fusions": lambda s, out: _dynamic_defaults(s.usual, s, out),
    "dynamic, tool's defaults": lambda s, out: _dynamic_defaults(s.fp32, s, out),
    PER_TENSOR: lambda s, out: _dynamic(s.fp32, s, out, per_channel=False),
    "dynamic, weights per channel": lambda s, out: _dynamic(s.fp32, s, out, per_channel=True),
    "static QDQ, MinMax": _static,
    "zeroquant of onnxsim": _zeroquant,
    FP32_ROWS: lambda sources, out: _copy(sources.rows, out),
    "dynamic, per tensor, token rows": lambda s, out: _dynamic(s.rows, s, out, per_channel=False),
    ROW_WISE: _row_wise,
}


class _Feeds(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
    """Pairs one by one, so that no padding widens a range."""

    def __init__(self, pairs: Sequence[EncodedPair], inputs: Sequence[str]) -> None:
        self._pairs = iter(pairs)
        self._inputs = inputs

    def get_next(self) -> dict[str, NDArray[np.int64]] | None:
        """The next pair's inputs; None at the end."""
        pair = next(self._pairs, None)
        if pair is None:
            return None
        whole = {IDS: pair.ids, MASK: np.ones_like(pair.ids), TYPE_IDS: pair.type_ids}
        return {name: whole[name][None] for name in self._inputs}
