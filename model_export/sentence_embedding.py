"""Sentence embeddings from a BERT encoder, without the sentence-transformers package."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoConfig, AutoTokenizer, BertModel

from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers, refusing
from model_export.loaded_weights import refuse_random_weights

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray
    from transformers import PreTrainedTokenizerBase

EMBEDDING_MAX_TOKENS = 128
"""Tokens of a text that are embedded, as the base was trained (its model card, "128 tokens")."""


Pooling = Literal["cls", "mean", "cat4"]
"""How one vector is made of all tokens' states: the last [CLS]; the mean of the last states over
the real tokens; the [CLS] of the last four layers side by side (of all, if there are fewer)."""

CAT_LAYERS = 4


def embed_texts(
    base: Path, texts: Sequence[str], progress: str | None = None, batch_texts: int = 64
) -> NDArray[np.float32]:
    """`pooled_embeddings` by the mean, as the default base was trained to be read.

    Returns:
        float32, shape (n, hidden), in the order of `texts`.

    Source: pooling as in the model card of sentence-transformers/all-MiniLM-L6-v2.
    """
    return pooled_embeddings(base, texts, ("mean",), progress, batch_texts)["mean"]


def pooled_embeddings(
    base: Path,
    texts: Sequence[str],
    poolings: Sequence[Pooling],
    progress: str | None = None,
    batch_texts: int = 64,
) -> dict[Pooling, NDArray[np.float32]]:
    """Unit-length sentence embeddings in several poolings, from one pass over the texts.

    Args:
        base: Folder with a BERT encoder and its tokenizer.
        texts: n texts; longer ones are cut at `EMBEDDING_MAX_TOKENS`.
        poolings: Those wanted.
        progress: Name of the progress bar, None for no bar.
        batch_texts: Texts per forward pass.

    Returns:
        By pooling float32, shape (n, hidden) or for `cat4` (n, layers x hidden), in the order of
        `texts`.

    Raises:
        UnsupportedCheckpoint: The folder holds no BERT, or lacks weights of it.
    """
    tokenizer, encoder = _load(base)
    n_cat = min(CAT_LAYERS, encoder.config.num_hidden_layers)
    width = encoder.config.hidden_size
    vectors = {
        pooling: np.empty((len(texts), n_cat * width if pooling == "cat4" else width), np.float32)
        for pooling in poolings
    }
    order = np.argsort([len(text) for text in texts], kind="stable")  # like lengths: less padding
    starts = range(0, len(texts), batch_texts)
    for start in tqdm(starts, desc=progress, unit="batch", disable=progress is None):
        indices = order[start : start + batch_texts]
        batch = tokenizer(
            [texts[index] for index in indices],
            padding=True,
            truncation=True,
            max_length=min(EMBEDDING_MAX_TOKENS, encoder.config.max_position_embeddings),
            return_tensors="pt",
        )
        with torch.inference_mode():
            layers = encoder(**batch, output_hidden_states=True).hidden_states[-n_cat:]
        mask = batch["attention_mask"].unsqueeze(-1).to(layers[-1].dtype)  # (b, t, 1)
        for pooling in poolings:
            pooled = pool(layers, mask, pooling)
            vectors[pooling][indices] = torch.nn.functional.normalize(pooled, dim=1).numpy()
    return vectors


def _load(base: Path) -> tuple[PreTrainedTokenizerBase, BertModel]:
    name = f"base model {base.name}"
    with refusing(f"{name}: "), quiet_transformers():
        config = AutoConfig.from_pretrained(base, trust_remote_code=False)
    if config.model_type != "bert":
        raise UnsupportedCheckpoint(
            f"{name} is of the family {config.model_type}, and sentence embeddings are made with "
            "BERT alone: take a BERT encoder (--base), such as the default one"
        )
    with refusing(f"{name}: "), quiet_transformers():  # a missing weight is refused, no use lost
        tokenizer = AutoTokenizer.from_pretrained(base)
        encoder, info = BertModel.from_pretrained(
            base, config=config, add_pooling_layer=False, output_loading_info=True
        )
    refuse_random_weights(info, name, ())
    return tokenizer, encoder.eval()


def pool(layers: Sequence[torch.Tensor], mask: torch.Tensor, pooling: Pooling) -> torch.Tensor:
    """(b, width) of the states of the last layers, (b, t, hidden) each, and the mask (b, t, 1)."""
    if pooling == "mean":
        return (layers[-1] * mask).sum(1) / mask.sum(1)
    if pooling == "cls":
        return layers[-1][:, 0]
    return torch.cat([states[:, 0] for states in layers], dim=1)
