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
from model_export.cross_encoder import read_cross_encoder
from model_export.errors import UnsupportedCheckpoint
from model_export.library_calls import quiet_transformers
from model_export.load_classifier import load_model, load_tokenizer
from model_export.read_head import read_head
from service.scoring.ad_template import AdTemplate
from service.scoring.bundle_files import sha256_of
from service.scoring.calibration import ScoreCalibration, parse_score_calibration
from service.scoring.head import Head

# Longest pair when neither the checkpoint nor the user says: ads are short, and every token costs.
DEFAULT_MAX_LENGTH_TOKENS = 128

SHORTEST_LIMIT_TOKENS = 8  # of the manifest: room for the special tokens and a word on each side

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

    @property
    def backend(self) -> Tokenizer:
        """A fresh copy of the Rust tokenizer, as `tokenizer.json` will hold it."""
        return Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def pad_id(self) -> int:
        """Token id that fills shorter rows."""
        return int(self.tokenizer.pad_token_id)


def load_adapted(adapter: Path, base: str | None, name: str | None) -> Checkpoint:
    """A base model with an adapter of `finetune` merged in.

    Args:
        adapter: Folder of the adapter.
        base: Folder or hub id of the base weights; None looks where the adapter says. Their hash
            must be the recorded one either way.
        name: Name of the model; None takes the folder's.

    Raises:
        BaseWeightsMissing: They were found nowhere.
        AdapterMismatch: The adapter was made for other weights.
        UnsupportedCheckpoint: The meaning of its head is unclear, or its calibration is none.
    """
    from transformers import AutoTokenizer

    from model_export import adapter as adapters
    from model_export.base_weights import resolve_base

    facts = adapters.read_facts(adapter)
    base_name = Path(facts.base).name if Path(facts.base).is_dir() else facts.base
    with quiet_transformers():  # it warns of a new head, which the adapter then fills
        model = adapters.load_merged(adapter, base)
    tokenizer = AutoTokenizer.from_pretrained(resolve_base(base or facts.base, facts.base_sha256))
    with _named(str(adapter)):
        head = read_head(model.config, None)
        calibration = read_calibration(adapter)
    weights_sha256 = sha256_of(adapter / adapters.WEIGHTS_FILE)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        name=name or adapter.resolve().name,
        source=f"{base_name} with adapter {adapter.resolve().name}",
        source_sha256=hashlib.sha256((facts.base_sha256 + weights_sha256).encode()).hexdigest(),
        head=head,
        template=facts.ad_template,
        max_length_tokens=facts.max_pair_tokens,
        calibration=calibration,
    )


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
    with _named(reference):
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
        limit = _usual_length(longest_pair(model, tokenizer), facts.max_length_tokens)
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
    return replace(checkpoint, max_length_tokens=max_length_tokens)


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


@contextlib.contextmanager
def _named(reference: str) -> Iterator[None]:
    """What is wrong with a checkpoint, with its name before it."""
    try:
        yield
    except UnsupportedCheckpoint as error:
        raise UnsupportedCheckpoint(f"checkpoint {reference} {error}") from error


def _usual_length(longest_tokens: int, stated_tokens: int | None) -> int:
    limit = min(DEFAULT_MAX_LENGTH_TOKENS, longest_tokens, stated_tokens or longest_tokens)
    if limit < SHORTEST_LIMIT_TOKENS:
        raise UnsupportedCheckpoint(
            f"reads at most {limit} tokens, and a pair needs {SHORTEST_LIMIT_TOKENS}"
        )
    return limit


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
