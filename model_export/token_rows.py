"""Lay a fused encoder out in token rows: less to move between the products, the same numbers.

Everything in an encoder but attention treats each token by itself, so hidden states can lie flat
as (tokens, hidden), and the tokens of one position in all pairs can lie together ("time-major",
row = position * pairs + pair). In that order attention reads queries, keys and values where they
lie; see `row_attention`.

A head that reads only the first token needs little of the last layer: its queries, its output
product and its feed-forward half are computed for the first two tokens of a pair. That saves up
to 10/12 of a layer's products, which a model of few layers feels most. (Two, since a matrix of one
row goes through another routine of ONNX Runtime, whose sums have another order: a pair would
score differently alone.)

The pass takes an encoder from the normalization on that its first fused attention reads, to its
head. What stands before stays as it is; if anything after it is unknown, all does.
"""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from model_export.encoder_shape import EncoderShape, encoder_shape, is_first_token, row_inputs
from model_export.graph_editor import GraphEditor, reads
from model_export.row_attention import RowAttention

# Dimensions that `row_group` tells apart: all tokens, and the leading ones of each pair.
ALL_ROWS, LEADING_ROWS = "token_rows", "leading_rows"


def lay_out_token_rows(model: onnx.ModelProto) -> bool:
    """Rewrite, in place, an encoder whose attention was fused to `MultiHeadAttention`.

    Args:
        model: fp32 graph whose normalizations and embeddings are not fused with their neighbours.

    Returns:
        Whether it was rewritten; a graph with anything unexpected is left as it was.
    """
    editor = GraphEditor(model.graph)
    shape = encoder_shape(editor)
    if shape is None:
        return False
    layout = _Layout(editor, shape)
    layout.run()
    if not layout.complete:
        return False
    editor.finish()
    del model.graph.value_info[:]
    model.graph.value_info.extend(layout.value_info())
    return True


def row_group(model: onnx.ModelProto) -> dict[str, str]:
    """Which tensors are token rows, (rows, n): the name of their first dimension."""
    return {
        info.name: info.type.tensor_type.shape.dim[0].dim_param
        for info in model.graph.value_info
        if len(info.type.tensor_type.shape.dim) == 2
        and info.type.tensor_type.shape.dim[0].dim_param in (ALL_ROWS, LEADING_ROWS)
    }


class _Layout:
    """Builds the new nodes. Tensors have up to two forms: all rows, and the leading ones."""

    def __init__(self, editor: GraphEditor, shape: EncoderShape) -> None:
        self._editor = editor
        self._root = shape.root
        self._attention = RowAttention(editor, shape)
        self._rows: dict[str, str] = {}
        self._leading: dict[str, str] = {}
        self._leading_only = self._find_leading_only()
        self.complete = True

    def run(self) -> None:
        for node in self._editor.old_nodes:
            self._place(node)
            if self._root in node.output:
                self._rows[self._root] = self._attention.lay_out(f"{self._root}_rows")

    def value_info(self) -> list[onnx.ValueInfoProto]:
        """The rank of the new tensors, for the passes that follow."""
        return [
            helper.make_tensor_value_info(name, TensorProto.FLOAT, [group, None])
            for forms, group in ((self._rows, ALL_ROWS), (self._leading, LEADING_ROWS))
            for name in forms.values()
        ]

    def _find_leading_only(self) -> set[str]:
        """Tensors of which only the first token's row is ever used."""
        editor = self._editor
        found: set[str] = set()

        def reads_first(node: onnx.NodeProto, name: str) -> bool:
            if is_first_token(editor, node):
                return True
            if node.output[0] not in found:
                return False
            if node.op_type == "MultiHeadAttention":
                return name not in node.input[1:]  # keys and values are read whole
            sources = row_inputs(editor, node)
            return sources is not None and name in sources

        for node in reversed(editor.old_nodes):
            for name in node.output:
                readers = [] if name in editor.outputs else editor.consumers(name)
                if readers and all(reads_first(reader, name) for reader in readers):
                    found.add(name)
        return found

    def _place(self, node: onnx.NodeProto) -> None:
        editor, output = self._editor, node.output[0]
        if is_first_token(editor, node) and self._has(node.input[0]):
            self._attention.first_rows(self._leading_of(node.input[0]), output)
            return
        sources = row_inputs(editor, node)
        if sources and all(self._has(name) for name in sources):
            self._copy(node, sources)
        elif node.op_type == "MultiHeadAttention" and all(map(self._has, node.input[:3])):
            self._attend(node)
        else:
            # Whoever else reads hidden states reads them as they were: not ours to lay out.
            self.complete &= not any(map(self._has, reads(node)))
            editor.keep(node)

    def _has(self, name: str) -> bool:
        return name in self._rows or name in self._leading

    def _copy(self, node: onnx.NodeProto, sources: list[str]) -> None:
        """The same operator on rows."""
        output = node.output[0]
        leading = output in self._leading_only
        forms = {n: self._leading_of(n) if leading else self._rows[n] for n in sources}
        copy = onnx.NodeProto()
        copy.CopyFrom(node)
        del copy.input[:], copy.output[:]
        copy.input.extend(forms.get(name, name) for name in node.input)
        copy.output.append(self._name(output, leading))
        self._editor.keep(copy)

    def _name(self, output: str, leading: bool) -> str:
        forms, ending = (self._leading, "leading") if leading else (self._rows, "rows")
        self.complete &= output not in self._editor.outputs  # wanted as it was
        forms[output] = f"{output}_{ending}"
        return forms[output]

    def _leading_of(self, name: str) -> str:
        """The rows of the leading positions."""
        if name not in self._leading:
            self._leading[name] = self._attention.leading_rows(self._rows[name], f"{name}_leading")
        return self._leading[name]

    def _attend(self, node: onnx.NodeProto) -> None:
        query, key, value = node.input[:3]
        leading = node.output[0] in self._leading_only
        self._attention.attend(
            node,
            self._leading_of(query) if leading else self._rows[query],
            self._rows[key],
            self._rows[value],
            self._name(node.output[0], leading),
            leading=leading,
        )
