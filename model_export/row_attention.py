"""Attention on token rows in time-major order: nothing is transposed on the way in.

Queries, keys and values lie as (positions, pairs * heads, head size), which ONNX Runtime's
FusedMatMul multiplies as they are, one product for each pair and head.

Padding is a copy of the pair's first token at the price of `PADDING_LOGIT`: a padded row goes
through every layer as its first row does, so its key scores exactly as much as the first token's,
and less than the best by at least that price. Its weight is then below exp(-50) = 2e-22 of the best
one's, which float32 sums of numbers around 1 do not notice. The usual -1e9 gives the same sums, but
ONNX Runtime's exp then ends in denormal numbers, which doubled the time of softmax here. (They
come back, with the same sums, where a first token scores 37 less than the best one.)
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto

from model_export.encoder_shape import MASK, EncoderShape
from model_export.graph_editor import CONTRIB_DOMAIN, GraphEditor, attribute

PADDING_LOGIT = -50.0

N_LEADING = 2  # positions that are kept where only the first is read


class RowAttention:
    """Adds the attentions of one encoder to a graph; what they share is computed once."""

    def __init__(self, editor: GraphEditor, shape: EncoderShape) -> None:
        self._editor = editor
        self._root = shape.root
        self._root_width = shape.root_width
        self._n_heads = shape.n_heads
        self._hidden = shape.hidden

    def lay_out(self, output: str) -> str:
        """The first hidden states (pairs, positions, hidden) as rows, padding filled.

        Called once, before any other method.
        """
        editor, flat = self._editor, self._const("flat_root", [-1, self._root_width])
        dims = editor.add("Shape", [MASK], "rows_dims")  # pairs, positions
        n_pairs = editor.add("Gather", [dims, self._const("0", [0])], "rows_n_pairs")
        n_positions = editor.add("Gather", [dims, self._const("1", [1])], "rows_n_positions")
        editor.add("Mul", [n_pairs, self._const("leading", [N_LEADING])], "rows_n_leading")
        self._add_shapes(n_pairs, n_positions)
        self._add_padding(n_pairs, n_positions)
        return editor.add(
            "Gather",
            [editor.add("Reshape", [self._root, flat], "rows_by_pair"), self._order()],
            output,
            axis=0,
        )

    def _add_shapes(self, n_pairs: str, n_positions: str) -> None:
        editor, rest = self._editor, self._const("rest", [-1])
        heads = self._const("heads", [self._n_heads])
        size = self._const("head_size", [self._hidden // self._n_heads])
        batch = editor.add("Mul", [n_pairs, heads], "rows_n_pairs_and_heads")
        editor.add("Concat", [rest, batch, size], "rows_split", axis=0)
        editor.add("Concat", [n_pairs, heads, rest, n_positions], "rows_scores_by_pair", axis=0)
        editor.add("Concat", [batch, rest, n_positions], "rows_scores_flat", axis=0)

    def _add_padding(self, n_pairs: str, n_positions: str) -> None:
        """What is added to the logits: (pairs, 1, 1, positions), and spread over the queries.

        Spread once: added as it is, it would be spread in every layer.
        """
        editor, one = self._editor, self._const("1", [1])
        is_real = editor.add("Cast", [MASK], "rows_is_real", to=TensorProto.BOOL)
        free = editor.constant("rows_free", np.float32(0))
        price = editor.constant("rows_price", np.float32(PADDING_LOGIT))
        padding = editor.add("Where", [is_real, free, price], "rows_padding_by_pair")
        narrow = editor.add(
            "Unsqueeze", [padding, self._const("inner", [1, 2])], "rows_padding_leading"
        )
        square = editor.add(
            "Concat", [n_pairs, one, n_positions, n_positions], "rows_square", axis=0
        )
        editor.add("Expand", [narrow, square], "rows_padding")

    def _order(self) -> str:
        """(rows,) where each row stands in pair-major order; padding points to its first token."""
        editor = self._editor
        scalar = self._const_scalar("scalar_0", 0), self._const_scalar("scalar_1", 1)
        counts = [
            editor.add("Gather", ["rows_dims", index], f"rows_count_{axis}")
            for axis, index in enumerate(scalar)
        ]
        pairs, positions = (
            editor.add("Range", [scalar[0], count, scalar[1]], f"rows_range_{axis}")
            for axis, count in enumerate(counts)
        )
        real = editor.add("Cast", [MASK], "rows_real_int", to=TensorProto.INT64)
        within = editor.add("Mul", [real, positions], "rows_within")  # (pairs, positions)
        starts = editor.add("Mul", [pairs, counts[1]], "rows_starts")
        starts = editor.add("Unsqueeze", [starts, self._const("1", [1])], "rows_starts_column")
        order = editor.add("Add", [within, starts], "rows_order_by_pair")
        order = editor.add("Transpose", [order], "rows_order_by_position", perm=[1, 0])
        return editor.add("Reshape", [order, self._const("rest", [-1])], "rows_order")

    def leading_rows(self, rows: str, output: str) -> str:
        """The rows of the first positions, which lie together at the top."""
        return self._editor.add("Slice", [rows, self._const("0", [0]), "rows_n_leading"], output)

    def first_rows(self, leading: str, output: str) -> str:
        """(pairs, hidden) the first token of each pair."""
        return self._editor.add("Slice", [leading, self._const("0", [0]), "rows_n_pairs"], output)

    def attend(
        self, node: onnx.NodeProto, q: str, k: str, v: str, output: str, *, leading: bool
    ) -> str:
        """softmax(q k^T / sqrt(head size) + padding) v.

        Args:
            node: The `MultiHeadAttention` whose bias and scale are taken over.
            q: Rows of the queries before their bias; the leading ones only, if `leading`.
            k: All rows of the keys.
            v: All rows of the values.
            output: Name of the result, as many rows as `q`.
            leading: Whether only the leading positions ask.
        """
        editor, hidden = self._editor, self._hidden
        if len(node.input) > 3 and node.input[3]:
            bias = editor.value(node.input[3])
            assert bias is not None  # noqa: S101  # `encoder_shape` saw that it is constant
            # The keys' bias adds the same to all scores of a query: softmax does not see it.
            q_bias = editor.constant(f"{output}_q_bias", bias[:hidden])
            v_bias = editor.constant(f"{output}_v_bias", bias[2 * hidden :])
            q = editor.add("Add", [q, q_bias], f"{output}_q")
            v = editor.add("Add", [v, v_bias], f"{output}_v")
        q, k, v = (
            editor.add("Reshape", [tensor, "rows_split"], f"{output}_{letter}_heads")
            for tensor, letter in ((q, "q"), (k, "k"), (v, "v"))
        )
        scale = float(attribute(node, "scale", 0.0)) or (hidden // self._n_heads) ** -0.5
        logits = editor.add(
            "FusedMatMul", [q, k], f"{output}_logits", CONTRIB_DOMAIN,
            transBatchA=1, transBatchB=1, transB=1, alpha=scale,
        )  # fmt: skip
        logits = editor.add("Reshape", [logits, "rows_scores_by_pair"], f"{output}_by_pair")
        padding = "rows_padding_leading" if leading else "rows_padding"
        padded = editor.add("Add", [logits, padding], f"{output}_padded")
        weights = editor.add("Softmax", [padded], f"{output}_weights", axis=-1)
        weights = editor.add("Reshape", [weights, "rows_scores_flat"], f"{output}_weights_flat")
        mixed = editor.add(
            "FusedMatMul", [weights, v], f"{output}_mixed", CONTRIB_DOMAIN, transBatchB=1
        )
        turned = editor.add("Transpose", [mixed], f"{output}_turned", perm=[1, 0, 2])
        return editor.add("Reshape", [turned, self._const("flat", [-1, hidden])], output)

    def _const(self, name: str, value: list[int]) -> str:
        return self._editor.constant(f"rows_{name}", np.array(value, dtype=np.int64))

    def _const_scalar(self, name: str, value: int) -> str:
        return self._editor.constant(f"rows_{name}", np.int64(value))
