"""How long a pair may be: for what the model and its tokenizer were made, and what pays."""

from __future__ import annotations

from typing import Any

from model_export.errors import UnsupportedCheckpoint

# Longest pair where neither the checkpoint nor the user says: ads are short, every token costs.
DEFAULT_MAX_LENGTH_TOKENS = 128

SHORTEST_LIMIT_TOKENS = 8  # of the manifest: room for the special tokens and a word on each side


def longest_pair(model: Any, tokenizer: Any) -> int:  # noqa: ANN401  # untyped libraries
    """Most tokens of a pair that the model has positions for and its tokenizer was made for.

    RoBERTa and its kin count positions from behind the padding token's id, so the first rows of
    their table are never used; their table names that id, whatever the family is called. Models
    with relative or rotary positions have no table, and read as far as they were trained to.
    """
    n_positions = int(getattr(model.config, "max_position_embeddings", 512))
    for name, module in model.named_modules():
        if name.endswith(".position_embeddings") and hasattr(module, "num_embeddings"):
            reserved = 0 if module.padding_idx is None else module.padding_idx + 1
            n_positions = module.num_embeddings - reserved
    return min(n_positions, int(tokenizer.model_max_length))  # a huge number when nobody said


def usual_length(longest_tokens: int, stated_tokens: int | None) -> int:
    """The longest pair to serve where the user does not say: what the original reads, if known.

    Args:
        longest_tokens: What the model can read.
        stated_tokens: What the checkpoint says that it reads; None where it is silent.

    Raises:
        UnsupportedCheckpoint: It is too short for any pair. The message goes on after
            "checkpoint NAME".
    """
    limit = min(stated_tokens or DEFAULT_MAX_LENGTH_TOKENS, longest_tokens)
    if limit < SHORTEST_LIMIT_TOKENS:
        raise UnsupportedCheckpoint(
            f"reads at most {limit} tokens, and a pair needs {SHORTEST_LIMIT_TOKENS}"
        )
    return limit


def length_note(limit_tokens: int, longest_tokens: int, stated_tokens: int | None) -> str | None:
    """What the user of an export should know of a length that he did not choose.

    Args:
        limit_tokens: As `usual_length` gave it.
        longest_tokens: As there.
        stated_tokens: As there.
    """
    if stated_tokens is None and limit_tokens < longest_tokens:
        return (
            f"it does not say how long the pairs were that it was trained on: longer ones than "
            f"{limit_tokens} tokens are cut; --max-length takes up to {longest_tokens}"
        )
    if limit_tokens > DEFAULT_MAX_LENGTH_TOKENS:
        return (
            f"pairs of up to {limit_tokens} tokens are read, as it says; each token costs time, "
            "and --max-length sets a shorter limit"
        )
    return None
