"""A student on disk as its difference from base weights that every machine can get.

    weight_delta.safetensors  for each linear map packed codes (`.codes`, `.step`); the rest, which
                              is vectors and the head, whole in fp16
    adrel.json                `DeltaFacts`: base weights with their hash, layers, the file's hash

Reading it back takes the chosen layers out of the base, adds the differences in float64 and rounds
once: the same weights, to the last bit, on every machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertForSequenceClassification

from model_export.base_weights import resolve_base, weights_sha256
from model_export.delta_tensors import Arrays, finest, restore
from model_export.distillation.student import make_student
from model_export.errors import DamagedDelta, ExportError
from model_export.facts_file import FACTS_FILE, read_facts_file, write_facts
from model_export.library_calls import quiet_transformers
from model_export.loaded_weights import CLASSIFIER_PREFIXES, refuse_random_weights
from service.scoring.bundle_files import sha256_of

WEIGHTS_FILE = "weight_delta.safetensors"


@dataclass(frozen=True, slots=True)
class DeltaFacts:
    """What a user of the file must know.

    Attributes:
        base: Folder, hub id or package of the base weights, see `resolve_base`.
        base_sha256: Hash of the base's `model.safetensors`, in hex.
        layers: Numbers of the base's layers that the student's differ from, from 0 on.
        delta_sha256: Hash of `weight_delta.safetensors`, in hex.
        max_pair_tokens: Longest pair that the student has learnt to read.
    """

    base: str
    base_sha256: str
    layers: tuple[int, ...]
    delta_sha256: str
    max_pair_tokens: int


def is_delta(folder: Path) -> bool:
    """Whether the folder holds a student as its difference from base weights."""
    return (folder / WEIGHTS_FILE).is_file()


def read_facts(folder: Path) -> DeltaFacts:
    """The facts recorded with a weight delta.

    Raises:
        DamagedDelta: The file is missing or incomplete.
    """
    return read_facts_file(folder, _parsed, _facts_missing)


def save_delta(
    student: Any,  # noqa: ANN401  # untyped library
    base: str,
    layers: tuple[int, ...],
    folder: Path,
    *,
    max_bytes: int,
    max_pair_tokens: int,
) -> DeltaFacts:
    """Write a student as the finest delta that fits.

    Args:
        student: BertForSequenceClassification with one logit and the base's embeddings.
        base: Folder, hub id or package of the base weights.
        layers: Of the base, those that the student's layers started from.
        folder: Made if it is not there.
        max_bytes: Most bytes of the weights' file.
        max_pair_tokens: Longest pair that the student has learnt to read.

    Raises:
        BaseWeightsMissing: The base weights were found nowhere.
        ExportError: The student is not of that base, or no delta is as small as that.
    """
    base_folder = resolve_base(base)
    start = _start(base_folder, layers)
    trained = _arrays(student.state_dict())
    _require_kin(trained, start)
    content = finest(trained, start, max_bytes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS_FILE).write_bytes(content)
    facts = DeltaFacts(
        base=base,
        base_sha256=weights_sha256(base_folder),
        layers=layers,
        delta_sha256=sha256_of(folder / WEIGHTS_FILE),
        max_pair_tokens=max_pair_tokens,
    )
    write_facts(folder, facts)
    return facts


def load_delta(folder: Path, base: str | None = None) -> BertForSequenceClassification:
    """The whole student, fp32, in eval mode.

    Args:
        folder: As `save_delta` wrote it.
        base: Where the base weights are; None looks where the facts say. The hash recorded there
            must be met either way.

    Raises:
        BaseWeightsMissing: The base weights were found nowhere.
        AdapterMismatch: They have another hash.
        UnsupportedCheckpoint: They are not all there.
        DamagedDelta: The file is not the one that the facts speak of, or does not fit the base.
    """
    facts = read_facts(folder)
    file = folder / WEIGHTS_FILE
    if not file.is_file() or sha256_of(file) != facts.delta_sha256:
        raise DamagedDelta(f"{file} is not the file whose sha256 {folder / FACTS_FILE} records")
    base_folder = resolve_base(base or facts.base, facts.base_sha256)
    student = _load_base(base_folder, facts.layers)
    state = _arrays(student.state_dict())
    try:
        restored = restore(file.read_bytes(), state)
    except DamagedDelta as error:
        raise DamagedDelta(f"{file} does not fit {base_folder}: {error}") from error
    student.load_state_dict(
        {name: torch.from_numpy(restored.get(name, value)) for name, value in state.items()}
    )
    student.eval()
    return student


def _parsed(fields: Mapping[str, Any]) -> DeltaFacts:
    return DeltaFacts(
        base=str(fields["base"]),
        base_sha256=str(fields["base_sha256"]),
        layers=tuple(int(number) for number in fields["layers"]),
        delta_sha256=str(fields["delta_sha256"]),
        max_pair_tokens=int(fields["max_pair_tokens"]),
    )


def _facts_missing(path: Path, why: Exception) -> DamagedDelta:
    return DamagedDelta(f"{path} does not say what the delta belongs to: {why!r}")


def _start(base_folder: Path, layers: tuple[int, ...]) -> Arrays:
    return _arrays(_load_base(base_folder, layers).state_dict())


def _load_base(base_folder: Path, layers: tuple[int, ...]) -> BertForSequenceClassification:
    with quiet_transformers():  # it warns of a new head, which the delta then fills
        whole, info = BertForSequenceClassification.from_pretrained(
            base_folder, num_labels=1, output_loading_info=True
        )
    refuse_random_weights(info, f"base model {base_folder.name}", CLASSIFIER_PREFIXES)
    student: BertForSequenceClassification = make_student(whole, layers)
    return student


def _require_kin(trained: Arrays, start: Arrays) -> None:
    shapes = {name: value.shape for name, value in trained.items()}
    if shapes != {name: value.shape for name, value in start.items()}:
        raise ExportError(
            "the student does not have the shapes of the base with those layers: give the base "
            "weights (--base) that its teacher, a BERT, was made from"
        )
    for name, value in trained.items():
        if ".embeddings." in name and not np.array_equal(value, start[name]):
            raise ExportError(
                f"the student's {name} differs from the base's, and a delta holds no embeddings: "
                "pack takes students of an adapter's (finetune --approach lora), distilled without "
                "--train-embeddings; export others as the checkpoints that they are"
            )


def _arrays(state: Mapping[str, torch.Tensor]) -> Arrays:
    return {name: value.detach().cpu().numpy() for name, value in state.items()}
