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

from model_export.errors import UnsupportedCheckpoint
from service.scoring.ad_template import AdTemplate
from service.scoring.bundle import sha256_of
from service.scoring.calibration import Head, ScoreCalibration

# How transformers names classes that nobody named: they say nothing about what is relevant.
GENERIC_LABEL = "LABEL_{}"

# Longest pair when neither the checkpoint nor the user says: ads are short, and every token costs.
DEFAULT_MAX_LENGTH_TOKENS = 128

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

    @property
    def backend(self) -> Tokenizer:
        """A fresh copy of the Rust tokenizer, as `tokenizer.json` will hold it."""
        return Tokenizer.from_str(self.tokenizer.backend_tokenizer.to_str())

    @property
    def pad_id(self) -> int:
        """Token id that fills shorter rows."""
        return int(self.tokenizer.pad_token_id or 0)


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
    """
    from transformers import AutoTokenizer

    from model_export import adapter as adapters
    from model_export.base_weights import resolve_base

    facts = adapters.read_facts(adapter)
    base_name = Path(facts.base).name if Path(facts.base).is_dir() else facts.base
    with quiet_transformers():  # it warns of a new head, which the adapter then fills
        model = adapters.load_merged(adapter, base)
    tokenizer = AutoTokenizer.from_pretrained(resolve_base(base or facts.base, facts.base_sha256))
    weights_sha256 = sha256_of(adapter / adapters.WEIGHTS_FILE)
    return Checkpoint(
        model=model,
        tokenizer=tokenizer,
        name=name or adapter.resolve().name,
        source=f"{base_name} with adapter {adapter.resolve().name}",
        source_sha256=hashlib.sha256((facts.base_sha256 + weights_sha256).encode()).hexdigest(),
        head=read_head(model.config, None),
        template=facts.ad_template,
        max_length_tokens=facts.max_pair_tokens,
        calibration=_read_calibration(adapter),
    )


def load_checkpoint(reference: str, relevant_label: str | None, name: str | None) -> Checkpoint:
    """Any local folder or hub id of a transformers sequence-classification model.

    Args:
        reference: Folder or hub id.
        relevant_label: For two-class heads, the label (or its index) that means relevant.
        name: Name of the model; None takes the last part of the reference.

    Raises:
        UnsupportedCheckpoint: Not there, not such a model, no safetensors weights, no fast
            tokenizer, a head that was never trained, or a head whose meaning is unclear.
    """
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    try:
        with quiet_transformers():  # what it would warn of is refused below
            model, info = AutoModelForSequenceClassification.from_pretrained(
                reference, use_safetensors=True, trust_remote_code=False, output_loading_info=True
            )
            tokenizer = AutoTokenizer.from_pretrained(
                reference, use_fast=True, trust_remote_code=False
            )
    except Exception as error:  # a folder can be broken in ways that raise anything
        raise UnsupportedCheckpoint(f"checkpoint {reference} cannot be loaded: {error}") from error
    if info["missing_keys"]:
        raise UnsupportedCheckpoint(
            f"checkpoint {reference} has no trained weights for "
            f"{sorted(info['missing_keys'])[:3]}: fine-tune it for sequence classification first"
        )
    if not tokenizer.is_fast:
        raise UnsupportedCheckpoint(
            f"checkpoint {reference} has no fast tokenizer (tokenizer.json), which serving needs"
        )
    folder = Path(reference)
    return Checkpoint(
        model=model.eval().float(),
        tokenizer=tokenizer,
        name=name or folder.name,
        source=folder.name if folder.is_dir() else reference,
        source_sha256=_state_sha256(model.state_dict().items()),
        head=read_head(model.config, relevant_label),
        template=AdTemplate(),
        max_length_tokens=min(DEFAULT_MAX_LENGTH_TOKENS, longest_pair(model.config, tokenizer)),
        calibration=_read_calibration(folder),
    )


@contextlib.contextmanager
def quiet_transformers() -> Iterator[None]:
    """Only errors of transformers are shown inside."""
    import transformers

    verbosity = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    try:
        yield
    finally:
        transformers.logging.set_verbosity(verbosity)


def with_max_length(checkpoint: Checkpoint, max_length_tokens: int) -> Checkpoint:
    """The same checkpoint for longer or shorter pairs.

    Raises:
        UnsupportedCheckpoint: The model has no positions for so many tokens.
    """
    limit = longest_pair(checkpoint.model.config, checkpoint.tokenizer)
    if not 8 <= max_length_tokens <= limit:
        raise UnsupportedCheckpoint(
            f"max length {max_length_tokens} is outside 8-{limit}, what the model can read"
        )
    return replace(checkpoint, max_length_tokens=max_length_tokens)


def longest_pair(config: Any, tokenizer: Any) -> int:  # noqa: ANN401  # untyped library
    """Most tokens of a pair that the model has positions for."""
    positions = int(getattr(config, "max_position_embeddings", 512))
    if config.model_type in ("roberta", "xlm-roberta", "camembert"):
        positions -= int(config.pad_token_id) + 1  # their first positions are never used
    return min(positions, int(tokenizer.model_max_length))


def read_head(config: Any, relevant_label: str | None) -> Head:  # noqa: ANN401
    """What the logits mean, from the config's labels; never guessed.

    Raises:
        UnsupportedCheckpoint: Two classes with generic names and nobody said which is relevant,
            or a label that does not exist.
    """
    n_logits = int(config.num_labels)
    if n_logits == 1:
        return Head(kind="binary", n_logits=1)
    labels = [str(config.id2label[index]) for index in range(n_logits)]
    if n_logits > 2:
        return Head(kind="ordinal", n_logits=n_logits)
    if relevant_label is not None:
        choices = {"0": 0, "1": 1, **{label: i for i, label in enumerate(labels)}}
        if relevant_label not in choices:
            raise UnsupportedCheckpoint(
                f"--relevant-label {relevant_label}: the model's labels are {labels}"
            )
        return Head(kind="binary", n_logits=2, relevant_index=choices[relevant_label])
    named = [i for i, label in enumerate(labels) if label.lower() == "relevant"]
    if len(named) == 1:
        return Head(kind="binary", n_logits=2, relevant_index=named[0])
    raise UnsupportedCheckpoint(
        f"the model has two classes named {labels}; say which one means relevant "
        "with --relevant-label"
    )


def _read_calibration(folder: Path) -> ScoreCalibration | None:
    file = folder / CALIBRATION_FILE
    if not file.is_file():
        return None
    try:
        return ScoreCalibration.model_validate(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise UnsupportedCheckpoint(f"{file} is not a score calibration: {error}") from error


def _state_sha256(tensors: Iterable[tuple[str, Any]]) -> str:
    digest = hashlib.sha256()
    for tensor_name, tensor in sorted(tensors, key=lambda item: item[0]):
        digest.update(tensor_name.encode())
        digest.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
