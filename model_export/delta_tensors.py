"""The weights that a student has learnt, as bytes and back: differences from where it started.

Linear maps are packed codes (`.codes`, `.step`), each with one step for the whole matrix; the rest,
which is vectors and the head, is whole in fp16. Embeddings are the base's, and left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from model_export import delta_codec
from model_export.errors import DamagedDelta, ExportError

Arrays = Mapping[str, NDArray[np.float32]]
"""A model's weights by name."""

CODES, STEP = ".codes", ".step"

LEAST_STEP, LARGEST_STEP = 0.05, 4.0
"""Steps by the root mean square of a matrix's differences: from 6.4 bits a weight to 0.7."""

SEARCH_ROUNDS = 12  # halvings of the range between them: the last is 0.1 % of it


def finest(trained: Arrays, start: Arrays, max_bytes: int) -> bytes:
    """The delta as bytes, with the smallest steps that fit.

    Args:
        trained: What a student has learnt, by name.
        start: What it started from; the same names and shapes.
        max_bytes: Most bytes.

    Raises:
        ExportError: No delta is as small as that.
    """
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


def restore(content: bytes, start: Arrays) -> Arrays:
    """What a student has learnt.

    Args:
        content: As `finest` gave it.
        start: What the student started from.

    Raises:
        DamagedDelta: These are no tensors, or not those of such a student.
    """
    try:
        stored = load_tensors(content)
        return {name: _restored(name, begun, stored) for name, begun in _learnt(start).items()}
    except (SafetensorError, KeyError, ValueError) as error:
        raise DamagedDelta(str(error)) from error


def _restored(
    name: str, start: NDArray[np.float32], stored: Mapping[str, NDArray[Any]]
) -> NDArray[np.float32]:
    if not _is_coded(start):
        return stored[name].astype(np.float32).reshape(start.shape)
    step = float(stored[name + STEP][0])
    delta = delta_codec.decode(stored[name + CODES], step, start.shape)
    return (start.astype(np.float64) + delta).astype(np.float32)


def _content(trained: Arrays, start: Arrays, relative_step: float) -> bytes:
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


def _learnt(state: Arrays) -> Arrays:
    return {name: value for name, value in state.items() if ".embeddings." not in name}
