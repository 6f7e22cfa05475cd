"""Loading what a user hands in: a fine-tuned sequence classifier, and what its outputs mean."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from model_export.checkpoint_config import (
    has_pooled_head,
    load_config,
    read_config,
    require_classifier,
    require_known_family,
)
from model_export.checkpoint_facts import read_checkpoint_facts
from model_export.cross_encoder import read_cross_encoder
from model_export.errors import UnsupportedCheckpoint
from model_export.load_classifier import load_model, load_tokenizer
from model_export.pair_length import (
    SHORTEST_LIMIT_TOKENS,
    length_note,
    longest_pair,
    usual_length,
)
from model_export.read_head import read_head
from service.scoring.ad_template import AdTemplate
from service.scoring.calibration import ScoreCalibration, parse_score_calibration
from service.scoring.head import Head

CALIBRATION_FILE = "score_calibration.json"


@dataclass(frozen=True)
class Checkpoint:
    """A loaded model with all that the export must know of it.

    Attributes:
        model: transformers model in eval mode, fp32, on the CPU.
        tokenizer: Its fast tokenizer.
        name: Short name for people.
        source: Where it came from, as the user wrote it; never a path of this machine.
        source_sha256: Over the weights (and the adapter's), so that the bundle names its origin.
        head: What the logits mean.
        template: How an ad became text in training.
        max_length_tokens: Longest pair.
        calibration: Stored beside the weights by `finetune`; None when there is none.
        notes: Sentences for the user of the export about what he might not expect.
        length_note: One of `max_length_tokens`, where that is not the user's own choice.
    """

    model: Any
    tokenizer: Any
    name: str
    source: str
    source_sha256: str
    head: Head
    template: AdTemplate
    max_length_tokens: int
    calibration: ScoreCalibration | None
    notes: tuple[str, ...] = ()
    length_note: str | None = None

    @property
    def backend(self) -> Tokenizer:
        """A fresh copy of the Rust tokenizer, as `tokenizer.json` will hold it."""
        return Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def pad_id(self) -> int:
        """Token id that fills shorter rows."""
        return int(self.tokenizer.pad_token_id)


def load_checkpoint(
    reference: str,
    relevant_label: str | None,
    name: str | None,
    *,
    grades: str | None = None,
    allow_pickle: bool = False,
) -> Checkpoint:
    """Any local folder or hub id of a sequence classifier of transformers or sentence-transformers.

    Args:
        reference: Folder or hub id.
        relevant_label: For heads of two or more classes, the label (or its index) that means
            relevant.
        name: Name of the model; None takes the last part of the reference.
        grades: For heads of three or more classes, all labels (or indices) from worst to best,
            with commas between.
        allow_pickle: Open pickled weights where there are no safetensors.

    Raises:
        UnsupportedCheckpoint: It cannot be served; one line, "checkpoint NAME" and the reason.
    """
    folder = Path(reference)
    with named(reference):
        fields = read_config(reference)
        is_pooled = has_pooled_head(reference)
        (require_known_family if is_pooled else require_classifier)(fields)
        facts = read_cross_encoder(reference, fields)
        config = load_config(reference)
        head = read_head(config, relevant_label, grades)  # refused before the weights are read
        if is_pooled:
            from model_export.pooled_classifier import load_pooled

            model: Any = load_pooled(folder, config)
        else:
            model = load_model(reference, config, allow_pickle=allow_pickle)
        tokenizer = load_tokenizer(reference, model)
        own = read_checkpoint_facts(folder)
        stated = facts.max_length_tokens if own is None else own.max_pair_tokens
        longest = longest_pair(model, tokenizer)
        limit = usual_length(longest, stated)
        calibration = read_calibration(folder)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        name=name or folder.resolve().name,
        source=folder.resolve().name if folder.is_dir() else reference,
        source_sha256=_state_sha256(model.state_dict().items()),
        head=head,
        template=AdTemplate(),
        max_length_tokens=limit,
        calibration=calibration,
        notes=(*facts.notes, *_regression_notes(config), *_segment_notes(model, tokenizer)),
        length_note=length_note(limit, longest, stated),
    )


def with_max_length(checkpoint: Checkpoint, max_length_tokens: int) -> Checkpoint:
    """The same checkpoint for longer or shorter pairs.

    Raises:
        UnsupportedCheckpoint: The model has no positions for so many tokens.
    """
    limit = longest_pair(checkpoint.model, checkpoint.tokenizer)
    if not SHORTEST_LIMIT_TOKENS <= max_length_tokens <= limit:
        raise UnsupportedCheckpoint(
            f"checkpoint {checkpoint.name} cannot have the max length {max_length_tokens}, which "
            f"is outside {SHORTEST_LIMIT_TOKENS}-{limit}, what the model can read"
        )
    return replace(checkpoint, max_length_tokens=max_length_tokens, length_note=None)


@contextlib.contextmanager
def named(reference: str) -> Iterator[None]:
    """Put a checkpoint's name before what is wrong with it.

    Raises:
        UnsupportedCheckpoint: The block has raised it.
    """
    try:
        yield
    except UnsupportedCheckpoint as error:
        raise UnsupportedCheckpoint(f"checkpoint {reference} {error}") from error


def _regression_notes(config: Any) -> tuple[str, ...]:  # noqa: ANN401  # untyped library
    if getattr(config, "problem_type", None) != "regression":
        return ()
    return (
        "it is a regression head, and what it gives is read as log-odds of relevance: calibrate "
        "(--calibrate) before a score is taken for a probability",
    )


def _segment_notes(model: Any, tokenizer: Any) -> tuple[str, ...]:  # noqa: ANN401  # untyped libraries
    n_segments = getattr(model.config, "type_vocab_size", 0) or 0
    if n_segments < 2 or "token_type_ids" in tokenizer.model_input_names:
        return ()
    return (
        "its tokenizer's config leaves out token_type_ids, so both sides of a pair are segment 0, "
        "as in transformers; if it was trained with two segments, add them to the config",
    )


def read_calibration(folder: Path) -> ScoreCalibration | None:
    """The score calibration stored beside a model's weights; None when there is none.

    Raises:
        UnsupportedCheckpoint: The file holds something else. The message goes on after
            "checkpoint NAME".
    """
    file = folder / CALIBRATION_FILE
    if not file.is_file():
        return None
    try:
        return parse_score_calibration(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        reason = " ".join(str(error).split())
        raise UnsupportedCheckpoint(
            f"has a {CALIBRATION_FILE} that is not a score calibration: {reason}"
        ) from error


def _state_sha256(tensors: Iterable[tuple[str, Any]]) -> str:
    digest = hashlib.sha256()
    for tensor_name, tensor in sorted(tensors, key=lambda item: item[0]):
        digest.update(tensor_name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
