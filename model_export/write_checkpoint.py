"""Writing a trained model as a checkpoint folder that `export` takes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from model_export.checkpoint_facts import CheckpointFacts
from model_export.facts_file import write_facts
from model_export.library_calls import quiet_transformers


def save_checkpoint(
    model: Any,  # noqa: ANN401  # untyped library
    tokenizer: Any,  # noqa: ANN401  # as above
    folder: Path,
    max_pair_tokens: int | None,
) -> None:
    """Write the model and its tokenizer.

    Args:
        model: Has `save_pretrained`.
        tokenizer: As loaded. Its own limit stays: that is what the encoder can read, and a longer
            pair may be asked for, or learnt by a model that starts from this one.
        folder: Made if it is not there.
        max_pair_tokens: Longest pair that the model has learnt to read, special tokens included;
            None for an encoder that has seen no pairs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if max_pair_tokens is not None:
        write_facts(folder, CheckpointFacts(max_pair_tokens))
    with quiet_transformers():
        model.save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    # safetensors makes files that their owner alone can read; the config has the usual mode.
    for weights in folder.glob("*.safetensors"):
        shutil.copymode(folder / "config.json", weights)
