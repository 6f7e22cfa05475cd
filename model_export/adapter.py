"""LoRA adapters on disk: a folder in PEFT's format that names and pins its base weights.

    adapter_config.json        PEFT's own file
    adapter_model.safetensors  low-rank updates and the classification head, fp16
    adrel.json                 `AdapterFacts`: base weights with their hash, text form, length

The first two load with `peft.PeftModel.from_pretrained` alone; `adrel.json` stands beside them
because PEFT warns of keys that it does not know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model_state_dict
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from transformers import BertForSequenceClassification

from model_export.base_weights import resolve_base
from model_export.errors import AdapterMismatch
from model_export.facts_file import read_facts_file, write_facts
from model_export.loaded_weights import CLASSIFIER_PREFIXES, refuse_random_weights
from service.scoring.ad_template import AdTemplate

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"

ADAPTER_NAME = "default"
"""PEFT's name for the only adapter of a model."""


@dataclass(frozen=True, slots=True)
class AdapterFacts:
    """What a user of the adapter must know and PEFT has no place for.

    Attributes:
        base: Folder, hub id or package of the base weights, see `resolve_base`.
        base_sha256: Hash of the base's `model.safetensors`, in hex.
        ad_template: How an ad became text in training.
        max_pair_tokens: Tokens kept per pair in training, special ones included.
        labels: Names of the logits, worst first; none for a single logit.
    """

    base: str
    base_sha256: str
    ad_template: AdTemplate
    max_pair_tokens: int
    labels: tuple[str, ...] = ()


def is_adapter(folder: Path) -> bool:
    """Whether the folder holds an adapter rather than a whole checkpoint."""
    return (folder / CONFIG_FILE).is_file()


def read_facts(folder: Path) -> AdapterFacts:
    """The facts recorded with an adapter.

    Raises:
        AdapterMismatch: The file is missing or incomplete.
    """
    return read_facts_file(folder, _parsed, _facts_missing)


def _parsed(fields: Mapping[str, Any]) -> AdapterFacts:
    template = fields["ad_template"]
    return AdapterFacts(
        base=str(fields["base"]),
        base_sha256=str(fields["base_sha256"]),
        ad_template=AdTemplate(tuple(template["fields"]), str(template["separator"])),
        max_pair_tokens=int(fields["max_pair_tokens"]),
        labels=tuple(str(label) for label in fields.get("labels", ())),
    )


def _facts_missing(path: Path, why: Exception) -> AdapterMismatch:
    return AdapterMismatch(
        f"{path} does not say which base weights the adapter needs: {why!r}; "
        "train it with 'python -m model_export finetune', which writes the file"
    )


def save_adapter(model: PeftModel, folder: Path, facts: AdapterFacts) -> None:
    """Write the adapter of a trained model in fp16, in PEFT's format, with its facts.

    fp16 halves the file; the updates are small against its 11 significant bits, and the change
    in the logits is far below the noise between two trainings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    state = _adapter_state(model)
    half = {
        name: value.detach().to("cpu", torch.float16).contiguous() for name, value in state.items()
    }
    # Not save_file, whose files their owner alone can read.
    (folder / WEIGHTS_FILE).write_bytes(save(half, metadata={"format": "pt"}))
    config = model.peft_config[ADAPTER_NAME]
    if not isinstance(config, LoraConfig):
        raise TypeError(f"only LoRA adapters can be saved, got {type(config).__name__}")
    config.base_model_name_or_path = facts.base
    config.inference_mode = True
    # PEFT keeps the names in sets, and repeats some: the file should not differ from run to run.
    config.target_modules = sorted(set(config.target_modules or ()))
    config.modules_to_save = sorted(set(config.modules_to_save or ()))
    config.save_pretrained(str(folder))
    write_facts(folder, facts)


def load_merged(folder: Path, base: str | None = None) -> BertForSequenceClassification:
    """The whole classifier: base weights with the adapter merged in, fp32, in eval mode.

    Args:
        folder: The adapter, as `save_adapter` wrote it.
        base: Where the base weights are; None looks where the adapter says. The hash recorded
            with the adapter must be met either way.

    Raises:
        BaseWeightsMissing: The base weights were found nowhere.
        AdapterMismatch: Another hash, other shapes, or an adapter that leaves parts untrained.
        UnsupportedCheckpoint: The base lacks weights.
    """
    facts = read_facts(folder)
    base_folder = resolve_base(base or facts.base, facts.base_sha256)
    n_labels, stored_names = _inspect_weights(folder / WEIGHTS_FILE)
    if facts.labels and len(facts.labels) != n_labels:
        raise AdapterMismatch(
            f"adapter {folder} names {len(facts.labels)} labels and has {n_labels} logits"
        )
    plain, info = BertForSequenceClassification.from_pretrained(
        base_folder, num_labels=n_labels, output_loading_info=True
    )
    refuse_random_weights(info, f"base model {base_folder.name}", CLASSIFIER_PREFIXES)
    try:
        adapted = PeftModel.from_pretrained(plain, str(folder), adapter_name=ADAPTER_NAME)
    except (RuntimeError, ValueError) as error:  # sizes; modules that the base does not have
        raise AdapterMismatch(f"adapter {folder} does not fit {base_folder}: {error}") from error
    # PEFT leaves what the file lacks at its random start and only warns.
    missing = set(_adapter_state(adapted)) - stored_names
    if missing:
        raise AdapterMismatch(
            f"adapter {folder} lacks {len(missing)} of the tensors that its config asks for, "
            f"such as {min(missing)}"
        )
    # In float64, so that the sums do not depend on the processor: the same adapter gives the same
    # weights, and so the same bundle version, everywhere.
    merged: object = adapted.double().merge_and_unload()
    if not isinstance(merged, BertForSequenceClassification):
        raise AdapterMismatch(f"adapter {folder} is for a {type(merged).__name__}")
    if facts.labels:
        merged.config.id2label = dict(enumerate(facts.labels))
    merged.float().eval()
    return merged


def _adapter_state(model: PeftModel) -> dict[str, torch.Tensor]:
    # Embeddings stay frozen; left to itself, PEFT asks the hub whether the vocabulary has grown.
    state: dict[str, torch.Tensor] = get_peft_model_state_dict(
        model, adapter_name=ADAPTER_NAME, save_embedding_layers=False
    )
    return state


def _inspect_weights(path: Path) -> tuple[int, set[str]]:
    """Number of logits of the stored head, and the names of all stored tensors."""
    try:
        with safe_open(path, framework="pt") as weights:
            names = set(weights.keys())
            heads = [name for name in names if name.endswith("classifier.bias")]
            if len(heads) != 1:
                raise AdapterMismatch(f"{path} holds no classification head, so it cannot score")
            return int(weights.get_slice(heads[0]).get_shape()[0]), names
    except (OSError, SafetensorError) as error:
        raise AdapterMismatch(f"{path} cannot be read: {error}") from error
