"""The original torch model, and what it says of pairs: what parity and evaluation refer to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from model_export.adapter import is_adapter
from model_export.adapter_checkpoint import load_adapted
from model_export.checkpoint import Checkpoint, load_checkpoint, with_max_length
from model_export.delta_checkpoint import load_delta_checkpoint
from model_export.errors import UnsupportedCheckpoint
from model_export.parity import Logits, torch_logits
from model_export.to_onnx import takes_segments
from model_export.weight_delta import is_delta
from service.scoring.encoding import EncodedPair, PairEncoder


def load_original(
    reference: str,
    *,
    relevant_label: str | None = None,
    grades: str | None = None,
    allow_pickle: bool = False,
    max_length: int | None = None,
) -> Checkpoint:
    """A checkpoint, or an adapter or a weight delta on the base weights that it names.

    Args:
        reference: Folder of one of them, or a hub id.
        relevant_label: As in `load_checkpoint`; an adapter states its head.
        grades: As in `load_checkpoint`.
        allow_pickle: As in `load_checkpoint`.
        max_length: Longest pair in tokens; None takes the checkpoint's own.

    Raises:
        ExportError: It cannot be loaded or served; see the three loaders.
    """
    if is_adapter(Path(reference)):
        found = load_adapted(Path(reference), None, None)
    elif is_delta(Path(reference)):
        found = load_delta_checkpoint(Path(reference), None, None)
    else:
        found = load_checkpoint(
            reference, relevant_label, None, grades=grades, allow_pickle=allow_pickle
        )
    return found if max_length is None else with_max_length(found, max_length)


def pair_encoder(checkpoint: Checkpoint) -> PairEncoder:
    """The service's encoder with the checkpoint's tokenizer and longest pair.

    Raises:
        UnsupportedCheckpoint: The tokenizer cannot join pairs.
    """
    try:
        return PairEncoder(checkpoint.backend, checkpoint.max_length_tokens)
    except ValueError as error:
        raise UnsupportedCheckpoint(f"checkpoint {checkpoint.name}: {error}") from error


def reference_logits(
    checkpoint: Checkpoint,
    encoded: Sequence[EncodedPair],
    on_progress: Callable[[int], None] = lambda _: None,
) -> Logits:
    """(n, k) logits of the original, each pair alone.

    Raises:
        UnsupportedCheckpoint: The model cannot read what its tokenizer makes of a pair.
    """
    try:
        return torch_logits(
            checkpoint.model,
            encoded,
            with_segments=takes_segments(checkpoint.model, checkpoint.tokenizer),
            on_progress=on_progress,
        )
    except (IndexError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UnsupportedCheckpoint(
            f"checkpoint {checkpoint.name} cannot read what its tokenizer makes of a pair: {reason}"
        ) from error
