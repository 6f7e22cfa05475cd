"""Writing a trained model as a checkpoint folder that `export` takes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from model_export.library_calls import quiet_transformers


def save_checkpoint(
    model: Any,  # noqa: ANN401  # untyped library
    tokenizer: Any,  # noqa: ANN401  # as above
    folder: Path,
    max_pair_tokens: int,
) -> None:
    """Write the model and its tokenizer.

    Args:
        model: Has `save_pretrained`.
        tokenizer: As loaded; the written one says `max_pair_tokens`, which is what the model has
            learnt to read.
        folder: Made if it is not there.
        max_pair_tokens: Longest pair, special tokens included.
    """
    folder.mkdir(parents=True, exist_ok=True)
    usual = tokenizer.model_max_length
    tokenizer.model_max_length = max_pair_tokens
    try:
        with quiet_transformers():
            model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
    finally:
        tokenizer.model_max_length = usual
    # safetensors makes files that their owner alone can read; the config has the usual mode.
    for weights in folder.glob("*.safetensors"):
        shutil.copymode(folder / "config.json", weights)
