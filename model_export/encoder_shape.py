"""Reading a fused encoder: where its hidden states enter, what its attentions share."""

from __future__ import annotations

from dataclasses import dataclass

import onnx

from model_export.graph_editor import GraphEditor, attribute

MASK = "attention_mask"

_ELEMENTWISE = frozenset({"BiasGelu", "FastGelu", "Gelu", "LayerNormalization", "Relu", "Tanh"})


@dataclass(frozen=True, slots=True)
class EncoderShape:
    """What all attentions of an encoder share, and the hidden states that enter the first.

    `root` can be narrower than the layers, which then begin with a projection.
    """

    root: str
    root_width: int
    n_heads: int
    hidden: int


def encoder_shape(editor: GraphEditor) -> EncoderShape | None:
    """The encoder's shape, or None where it is not one that this pass knows."""
    attentions = [n for n in editor.old_nodes if n.op_type == "MultiHeadAttention"]
    if not attentions or MASK not in editor.inputs:
        return None
    roots = {_root(editor, name) for name in attentions[0].input[:3]}
    heads = {int(attribute(node, "num_heads", 0)) for node in attentions}
    widths = {_width(editor, name) for node in attentions for name in node.input[:3]}
    known = all(_is_plain_attention(editor, node) for node in attentions)
    if not known or len(roots) != 1 or len(heads) != 1 or len(widths) != 1:
        return None
    (root,), (n_heads,), (hidden,) = roots, heads, widths
    producer = editor.producer(root)
    if hidden is None or producer is None or producer.op_type != "LayerNormalization":
        return None
    gain_dims = editor.constant_dims(producer.input[1])
    if gain_dims is None or len(gain_dims) != 1:
        return None
    return EncoderShape(root, gain_dims[0], n_heads, hidden)


def _is_plain_attention(editor: GraphEditor, node: onnx.NodeProto) -> bool:
    """Self-attention with at most a bias and the padding mask."""
    inputs = [*node.input, *[""] * 5][: max(5, len(node.input))]
    _, _, _, bias, mask, *others = inputs
    return (
        not any(others)
        and not attribute(node, "unidirectional", 0)
        and len(node.output) == 1
        and (not bias or editor.constant_dims(bias) is not None)
        and (not mask or _comes_from_the_mask(editor, mask))
    )


def _comes_from_the_mask(editor: GraphEditor, name: str) -> bool:
    """Whether a tensor is the padding mask, cast, or summed to the number of real tokens."""
    while name != MASK:
        node = editor.producer(name)
        if node is None or node.op_type not in ("Cast", "ReduceSum"):
            return False
        name = node.input[0]
    return True


def _root(editor: GraphEditor, name: str) -> str:
    """The tensor that a projection starts from: back through products and their biases."""
    node = editor.producer(name)
    while node is not None and node.op_type in ("MatMul", "Add"):
        sources = row_inputs(editor, node)
        if sources is None or len(sources) != 1:
            break
        [name] = sources
        node = editor.producer(name)
    return name


def _width(editor: GraphEditor, name: str) -> int | None:
    """The last dimension of a projection, from its weights."""
    node = editor.producer(name)
    while node is not None and node.op_type == "Add":
        sources = row_inputs(editor, node)
        if sources is None or len(sources) != 1:
            return None
        node = editor.producer(sources[0])
    dims = editor.constant_dims(node.input[1]) if node and node.op_type == "MatMul" else None
    return dims[1] if dims and len(dims) == 2 else None


def row_inputs(editor: GraphEditor, node: onnx.NodeProto) -> list[str] | None:
    """The inputs of a node that treats each token by itself, less its constants; else None."""
    if node.op_type in _ELEMENTWISE:
        # Any other axis than the last would mean another one in rows.
        return [node.input[0]] if attribute(node, "axis", -1) == -1 else None
    if node.op_type == "MatMul":
        dims = editor.constant_dims(node.input[1])
        return [node.input[0]] if dims is not None and len(dims) == 2 else None
    if node.op_type == "Add":
        names = [name for name in node.input if not _is_bias(editor, name)]
        if names and all(editor.constant_dims(name) is None for name in names):
            return names
    return None


def _is_bias(editor: GraphEditor, name: str) -> bool:
    dims = editor.constant_dims(name)
    return dims is not None and len(dims) <= 1


def is_first_token(editor: GraphEditor, node: onnx.NodeProto) -> bool:
    """Whether a node takes the first position of (pairs, positions, hidden)."""
    if node.op_type != "Gather" or attribute(node, "axis", 0) != 1:
        return False
    index = editor.value(node.input[1])
    return index is not None and index.shape == () and int(index) == 0
