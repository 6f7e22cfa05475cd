"""From one fused graph to a file for each recipe, and the reasons why some have none."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

from deploy.benchmarks.recipes import (
    FP32,
    RECIPES,
    RecipeUnavailable,
    Sources,
    constant_products,
)
from model_export.token_rows import lay_out_token_rows
from service.scoring.encoding import EncodedPair

FLOAT_PRODUCTS = ("MatMul", "FusedMatMul", "Gemm")
FUSED_WITH_ITS_BIAS = "/MatMulAddFusion"  # what the session then adds to a product's name
PRODUCTS_OF_ATTENTION = 3  # query, key and value, where it is fused with its projections
WEIGHTS_ONLY = ("MatMulNBits",)  # what becomes of int8 weights beside float activations


@dataclass(frozen=True, slots=True)
class BuiltRecipe:
    """One quantized graph.

    Attributes:
        name: Of the recipe.
        path: Of the graph.
        n_products: How many of the products are computed in integers on this machine.
    """

    name: str
    path: Path
    n_products: int

    @property
    def file_bytes(self) -> int:
        """Size of the graph on disk."""
        return self.path.stat().st_size


def build_recipes(
    graph: onnx.ModelProto,
    usual: onnx.ModelProto,
    folder: Path,
    range_pairs: Sequence[EncodedPair],
    *,
    reduce_range: bool,
    report: Callable[[str], None] = lambda _: None,
) -> tuple[list[BuiltRecipe], dict[str, str]]:
    """Every recipe's graph, and for those that cannot be built the reason.

    Args:
        graph: The fused fp32 graph; changed as `prepare` says.
        usual: The graph as ONNX Runtime's optimizer fuses it by itself.
        folder: Where the files go.
        range_pairs: For the static ranges.
        reduce_range: Give the tools' weights 7 bits; see `weights_need_seven_bits`.
        report: Told of each recipe before it is built.
    """
    products = prepare(graph)
    fp32, rows = folder / "fp32.onnx", folder / "rows.onnx"
    onnx.save(graph, fp32)
    onnx.save(usual, folder / "usual.onnx")
    lay_out_token_rows(graph)
    prepare(graph)
    onnx.save(graph, rows)
    sources = Sources(fp32, rows, folder / "usual.onnx", products, range_pairs, reduce_range)
    built, reasons = [BuiltRecipe(FP32, fp32, 0)], {}
    for name, build in RECIPES.items():
        report(f"build {name}")
        path = folder / f"{len(built)}.onnx"
        try:
            with _quiet():
                build(sources, path)
        except RecipeUnavailable as error:
            reasons[name] = str(error)
        else:
            built.append(BuiltRecipe(name, path, integer_products(path, products)))
    return built, reasons


def prepare(graph: onnx.ModelProto) -> tuple[str, ...]:
    """Give the products names, and what they read and write its type.

    Static quantization and onnxsim leave activations of unknown type in float without a word, and
    a fused graph states none.

    Returns:
        The names of the products.
    """
    products = constant_products(graph)
    for index, node in enumerate(products):
        node.name = node.name or f"product_{index}"
    known = {value.name for value in graph.graph.value_info}
    activations = dict.fromkeys(name for n in products for name in (n.input[0], n.output[0]))
    graph.graph.value_info.extend(
        helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        for name in activations
        if name not in known
    )
    return tuple(node.name for node in products)


def integer_products(path: Path, products: Collection[str]) -> int:
    """How many of the products the runtime computes in integers, after its own optimizations.

    A graph can say that it is quantized and still run in float: the session decides.
    """
    options = ort.SessionOptions()
    options.log_severity_level = 3  # errors; it warns that what it writes is for this machine
    with TemporaryDirectory() as folder:
        optimized = Path(folder) / "optimized.onnx"
        options.optimized_model_filepath = str(optimized)
        ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        nodes = onnx.load(optimized).graph.node

    def is_product(name: str) -> bool:
        return name in products or name.removesuffix(FUSED_WITH_ITS_BIAS) in products

    in_float: int = sum(
        node.op_type in WEIGHTS_ONLY or (node.op_type in FLOAT_PRODUCTS and is_product(node.name))
        for node in nodes
    ) + PRODUCTS_OF_ATTENTION * sum(node.op_type == "Attention" for node in nodes)
    return len(products) - in_float


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the tools' advice, which goes to the root logger and to stdout."""
    logging.disable(logging.WARNING)
    try:
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
            yield
    finally:
        logging.disable(logging.NOTSET)
