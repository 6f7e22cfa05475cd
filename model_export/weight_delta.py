"""A student on disk as its difference from base weights that every machine can get.

    weight_delta.safetensors  for each linear map packed codes (`.codes`, `.step`); the rest, which
                              is vectors and the head, whole in fp16
    adrel.json                `DeltaFacts`: base weights with their hash, layers, the file's hash

Reading it back takes the chosen layers out of the base, adds the differences in float64 and rounds
once: the same weights, to the last bit, on every machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors
from transformers import BertForSequenceClassification

from model_export import delta_codec
from model_export.base_weights import resolve_base, weights_sha256
from model_export.distillation.student import make_student
from model_export.errors import AdapterMismatch, DamagedDelta, ExportError
from model_export.library_calls import quiet_transformers
from service.scoring.bundle_files import sha256_of

FACTS_FILE = "adrel.json"
WEIGHTS_FILE = "weight_delta.safetensors"
CODES, STEP = ".codes", ".step"

LEAST_STEP, LARGEST_STEP = 0.05, 4.0
"""Steps by the root mean square of a matrix's differences: from 6.4 bits a weight to 0.7."""

SEARCH_ROUNDS = 12  # halvings of the range between them: the last is 0.1 % of it


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
    path = folder / FACTS_FILE
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return DeltaFacts(
            base=str(raw["base"]),
            base_sha256=str(raw["base_sha256"]),
            layers=tuple(int(number) for number in raw["layers"]),
            delta_sha256=str(raw["delta_sha256"]),
            max_pair_tokens=int(raw["max_pair_tokens"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DamagedDelta(f"{path} does not say what the delta belongs to: {error!r}") from error


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
    content = _finest(trained, start, max_bytes)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / WEIGHTS_FILE).write_bytes(content)
    facts = DeltaFacts(
        base=base,
        base_sha256=weights_sha256(base_folder),
        layers=layers,
        delta_sha256=sha256_of(folder / WEIGHTS_FILE),
        max_pair_tokens=max_pair_tokens,
    )
    text = json.dumps(asdict(facts), indent=2, sort_keys=True)
    (folder / FACTS_FILE).write_text(text + "\n", encoding="utf-8")
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
        stored = load_tensors(file.read_bytes())
        restored = {name: _restored(name, start, stored) for name, start in _learnt(state).items()}
    except (SafetensorError, DamagedDelta, KeyError, ValueError) as error:
        raise DamagedDelta(f"{file} does not fit {base_folder}: {error}") from error
    student.load_state_dict(
        {name: torch.from_numpy(restored.get(name, value)) for name, value in state.items()}
    )
    student.eval()
    return student


def _restored(
    name: str, start: NDArray[np.float32], stored: Mapping[str, NDArray[Any]]
) -> NDArray[np.float32]:
    if not _is_coded(start):
        return stored[name].astype(np.float32).reshape(start.shape)
    step = float(stored[name + STEP][0])
    delta = delta_codec.decode(stored[name + CODES], step, start.shape)
    return (start.astype(np.float64) + delta).astype(np.float32)


def _finest(
    trained: Mapping[str, NDArray[np.float32]],
    start: Mapping[str, NDArray[np.float32]],
    max_bytes: int,
) -> bytes:
    low, high = LEAST_STEP, LARGEST_STEP
    best = _content(trained, start, high)
    if len(best) > max_bytes:
        raise ExportError(
            f"this student's delta takes {len(best)} bytes at its coarsest, which is more than "
            f"{max_bytes}"
        )
    for _ in range(SEARCH_ROUNDS):
        middle = (low * high) ** 0.5
        content = _content(trained, start, middle)
        if len(content) > max_bytes:
            low = middle
        else:
            best, high = content, middle
    return best


def _content(
    trained: Mapping[str, NDArray[np.float32]],
    start: Mapping[str, NDArray[np.float32]],
    relative_step: float,
) -> bytes:
    tensors: dict[str, NDArray[Any]] = {}
    for name, value in _learnt(trained).items():
        if not _is_coded(value):
            tensors[name] = value.astype(np.float16)
            continue
        delta = value - start[name]
        scale = float(np.sqrt(np.square(delta, dtype=np.float64).mean())) or 1.0
        step = np.array([relative_step * scale], np.float32)
        tensors[name + STEP] = step
        tensors[name + CODES] = delta_codec.encode(delta, float(step[0]))
    return save_tensors(tensors)


def _is_coded(value: NDArray[np.float32]) -> bool:
    """Linear maps but the head, whose few weights have no start in the base."""
    return value.ndim == 2 and value.shape[0] > 1


def _learnt(state: Mapping[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
    return {name: value for name, value in state.items() if ".embeddings." not in name}


def _start(base_folder: Path, layers: tuple[int, ...]) -> dict[str, NDArray[np.float32]]:
    return _arrays(_load_base(base_folder, layers).state_dict())


def _load_base(base_folder: Path, layers: tuple[int, ...]) -> BertForSequenceClassification:
    with quiet_transformers():  # it warns of a new head, which the delta then fills
        whole, info = BertForSequenceClassification.from_pretrained(
            base_folder, num_labels=1, output_loading_info=True
        )
    random = [name for name in info["missing_keys"] if not name.startswith("classifier.")]
    if random:
        raise AdapterMismatch(f"base weights {base_folder} lack {', '.join(sorted(random))}")
    student: BertForSequenceClassification = make_student(whole, layers)
    return student


def _require_kin(
    trained: Mapping[str, NDArray[np.float32]], start: Mapping[str, NDArray[np.float32]]
) -> None:
    shapes = {name: value.shape for name, value in trained.items()}
    if shapes != {name: value.shape for name, value in start.items()}:
        raise ExportError("the student does not have the shapes of the base with those layers")
    for name, value in trained.items():
        if ".embeddings." in name and not np.array_equal(value, start[name]):
            raise ExportError(f"the student's {name} differs from the base's; train none of those")


def _arrays(state: Mapping[str, torch.Tensor]) -> dict[str, NDArray[np.float32]]:
    return {name: value.detach().cpu().numpy() for name, value in state.items()}
