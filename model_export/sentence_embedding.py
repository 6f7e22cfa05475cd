"""Sentence embeddings from a BERT encoder, without the sentence-transformers package."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from tqdm import tqdm
from transformers import AutoTokenizer, BertModel

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

EMBEDDING_MAX_TOKENS = 128
"""Tokens of a text that are embedded, as the base was trained (its model card, "128 tokens")."""


def embed_texts(
    base: Path, texts: Sequence[str], progress: str | None = None, batch_texts: int = 64
) -> NDArray[np.float32]:
    """Unit-length sentence embeddings: the mean of the last states over the real tokens.

    Args:
        base: Folder with a BERT encoder and its tokenizer.
        texts: n texts; longer ones are cut at `EMBEDDING_MAX_TOKENS`.
        progress: Name of the progress bar, None for no bar.
        batch_texts: Texts per forward pass.

    Returns:
        float32, shape (n, hidden), in the order of `texts`.

    Source: pooling as in the model card of sentence-transformers/all-MiniLM-L6-v2.
    """
    tokenizer = AutoTokenizer.from_pretrained(base)
    encoder = BertModel.from_pretrained(base, add_pooling_layer=False).eval()
    vectors = np.empty((len(texts), encoder.config.hidden_size), dtype=np.float32)
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
            states = encoder(**batch).last_hidden_state  # (b, t, hidden)
            mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)  # (b, t, 1)
            means = (states * mask).sum(1) / mask.sum(1)
            vectors[indices] = torch.nn.functional.normalize(means, dim=1).numpy()
    return vectors
