"""A BERT cross-encoder written a second time, from the papers' equations, in NumPy and float64.

An independent witness: it shares no line and no library with the export, so a fault that torch,
optimum and ONNX Runtime would all agree on still shows. Slow, and meant to be read beside

- Vaswani et al. 2017, "Attention is all you need" (arXiv 1706.03762), section 3;
- Devlin et al. 2018, "BERT" (arXiv 1810.04805), section 3;
- Ba et al. 2016, "Layer normalization" (arXiv 1607.06450), equation 4;
- Hendrycks and Gimpel 2016, "Gaussian error linear units" (arXiv 1606.08415), section 2.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

_erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x: Array) -> Array:
    """x P(X <= x) for a standard normal X, whose distribution is (1 + erf(x / sqrt 2)) / 2."""
    return np.asarray(x * (1 + _erf(x / math.sqrt(2))) / 2)


def tanh_gelu(x: Array) -> Array:
    """The approximation of the same paper; not what BERT was trained with."""
    return np.asarray(x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2)


@dataclass(frozen=True)
class NumpyEncoder:
    """BERT with a classification head.

    Attributes:
        weights: Tensors of the checkpoint by name; matrices are (out, in).
        n_layers: Encoder layers.
        n_heads: Attention heads of each.
        epsilon: Of every layer normalization.
        activation: Of the feed-forward layers.
    """

    weights: Mapping[str, Array]
    n_layers: int
    n_heads: int
    epsilon: float
    activation: Callable[[Array], Array] = gelu

    @classmethod
    def from_folder(cls, checkpoint: Path) -> NumpyEncoder:
        """The model whose `config.json` and `model.safetensors` lie there."""
        config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
        tensors = load_file(checkpoint / "model.safetensors")
        return cls(
            weights={name: tensor.astype(np.float64) for name, tensor in tensors.items()},
            n_layers=config["num_hidden_layers"],
            n_heads=config["num_attention_heads"],
            epsilon=config["layer_norm_eps"],
        )

    def logits(self, ids: Integers, mask: Integers, type_ids: Integers) -> Array:
        """(n, k) logits of (n, t) tokens; `mask` is 1 where there is a token, 0 at padding."""
        x = self._embed(ids, type_ids)  # (n, t, hidden)
        for layer in range(self.n_layers):
            block = f"bert.encoder.layer.{layer}"
            # "LayerNorm(x + Sublayer(x))", Vaswani et al., section 3.1.
            attended = self._attend(x, mask, f"{block}.attention")
            x = self._normalize(x + attended, f"{block}.attention.output.LayerNorm")
            fed = self._feed_forward(x, block)
            x = self._normalize(x + fed, f"{block}.output.LayerNorm")
        # "The final hidden state of the special [CLS] token", Devlin et al., section 3.
        pooled = np.tanh(self._affine(x[:, 0], "bert.pooler.dense"))
        return self._affine(pooled, "classifier")

    def _embed(self, ids: Integers, type_ids: Integers) -> Array:
        """The sum of token, segment and position embeddings (Devlin et al., figure 2)."""
        tokens = self.weights["bert.embeddings.word_embeddings.weight"][ids]
        segments = self.weights["bert.embeddings.token_type_embeddings.weight"][type_ids]
        positions = self.weights["bert.embeddings.position_embeddings.weight"][: ids.shape[1]]
        return self._normalize(tokens + segments + positions, "bert.embeddings.LayerNorm")

    def _attend(self, x: Array, mask: Integers, name: str) -> Array:
        """Multi-head attention: softmax(Q K^T / sqrt(d)) V for each head (section 3.2)."""
        query, key, value = (
            self._split_heads(self._affine(x, f"{name}.self.{part}"))
            for part in ("query", "key", "value")
        )  # each (n, heads, t, d)
        scores = query @ key.swapaxes(2, 3) / math.sqrt(query.shape[-1])  # (n, heads, t, t)
        scores = np.where(mask[:, None, None, :] == 1, scores, -np.inf)  # none looks at padding
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        heads = shares @ value  # (n, heads, t, d)
        joined = heads.swapaxes(1, 2).reshape(x.shape)
        return self._affine(joined, f"{name}.output.dense")

    def _split_heads(self, x: Array) -> Array:
        n, t, hidden = x.shape
        return x.reshape(n, t, self.n_heads, hidden // self.n_heads).swapaxes(1, 2)

    def _feed_forward(self, x: Array, name: str) -> Array:
        """Two affine maps at each position, with the activation between (section 3.3)."""
        inner = self.activation(self._affine(x, f"{name}.intermediate.dense"))
        return self._affine(inner, f"{name}.output.dense")

    def _affine(self, x: Array, name: str) -> Array:
        return np.asarray(x @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"])

    def _normalize(self, x: Array, name: str) -> Array:
        """Gain and bias on (x - mean) / sqrt(variance + epsilon), over the features (Ba et al.)."""
        centred = x - x.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + self.epsilon)
        gain, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        return np.asarray(gain * centred / deviation + bias)
