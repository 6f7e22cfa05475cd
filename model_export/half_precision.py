"""fp16 for GPUs: weights and sums in half precision, inputs and logits as they were."""

from __future__ import annotations

import onnx


def to_half_precision(graph: onnx.ModelProto) -> onnx.ModelProto:
    """The graph in fp16; what was given is used up.

    Args:
        graph: fp32, fused for a GPU.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16

    half: onnx.ModelProto = convert_float_to_float16(graph, keep_io_types=True)
    return half
