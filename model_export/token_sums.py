"""Sums over the tokens of a pair, written so that padding does not change a bit."""

from __future__ import annotations

import numpy as np
import onnx

from model_export.graph_editor import GraphEditor, attribute

TOKEN_AXIS = 1  # of hidden states, (pairs, tokens, hidden)


def sum_tokens_in_order(graph: onnx.GraphProto) -> None:
    """Rewrite, in place, each sum over the unmasked tokens of a pair as a running sum's end.

    ModernBERT can score the mean of all tokens. ReduceSum adds in blocks whose borders move with
    the padded length, so the same pair got other last bits in other company. A running sum adds
    one token after the other, and the zeros of the padding at its end change nothing.
    """
    editor = GraphEditor(graph)
    sums = [node.output[0] for node in graph.node if _is_masked_sum(editor, node)]
    if not sums:
        return
    axis = editor.constant("token_axis", np.int64(TOKEN_AXIS))
    last = editor.constant("last_token", np.int64(-1))
    for node in editor.old_nodes:
        if node.output[0] in sums:
            total = node.output[0]
            running = editor.add("CumSum", [node.input[0], axis], f"{total}_running")
            editor.add("Gather", [running, last], total, axis=TOKEN_AXIS)
        else:
            editor.keep(node)
    editor.finish()


def _is_masked_sum(editor: GraphEditor, node: onnx.NodeProto) -> bool:
    """Over the token axis of a product, as of hidden states with their mask."""
    if node.op_type != "ReduceSum" or attribute(node, "keepdims", 1) or len(node.input) < 2:
        return False  # without axes it is the sum of everything
    product, axes = editor.producer(node.input[0]), editor.value(node.input[1])
    is_product = product is not None and product.op_type == "Mul"
    return is_product and axes is not None and axes.tolist() == [TOKEN_AXIS]
