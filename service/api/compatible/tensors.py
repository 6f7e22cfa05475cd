"""Open Inference tensors: texts in, numbers out, as JSON or as bytes after it.

Bytes are Triton's binary tensor data extension: little-endian, and in BYTES tensors each element
has its length before it, in 4 bytes.
https://docs.nvidia.com/deeplearning/triton-inference-server/user-guide/docs/protocol/extension_binary_data.html
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
from pydantic import Field

from service.api.answering import invalid
from service.api.compatible.calls import LenientBody
from service.errors import InvalidRequest

TEXT_TYPE = "BYTES"
SIZE_PARAMETER = "binary_data_size"
SHARED_MEMORY = "shared_memory_region"
HEADER = "Inference-Header-Content-Length"

LENGTH = struct.Struct("<I")
MAX_SHOWN_CHARS = 50
MAX_AXES = 16


class TensorIn(LenientBody):
    """An input: `data` as JSON, or `parameters.binary_data_size` bytes after the JSON."""

    name: str = Field(description="`query` or `ad`; others are read and not used.")
    shape: list[int] = Field(
        fail_fast=True,
        max_length=MAX_AXES,
        min_length=1,
        description="[n] or [n, 1] of those that are used.",
    )
    datatype: str = Field(description="BYTES of those that are used.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="`binary_data_size`: how many bytes after the JSON are its data."
    )
    data: list[Any] | None = Field(
        default=None,
        description="Texts, nested as the shape says or flat. At most {max_ads_per_request} ads.",
    )


def split_body(content: bytes, header: str | None) -> tuple[bytes, memoryview]:
    """The JSON and what follows it.

    Args:
        content: The whole body.
        header: How many bytes the JSON has; None where the body is nothing else.

    Raises:
        InvalidRequest: No such number of bytes is there.
    """
    if header is None:
        return content, memoryview(b"")
    if not header.isascii() or not header.isdecimal() or len(header) > 12:
        raise invalid(HEADER, f"must be a number of bytes, got {header[:MAX_SHOWN_CHARS]!r}")
    size = int(header)
    if size > len(content):
        raise invalid(HEADER, f"got {size}, the body has {len(content)} bytes")
    return content[:size], memoryview(content)[size:]


def input_texts(
    tensors: Sequence[TensorIn], binary: memoryview, names: Sequence[str]
) -> dict[str, list[str]]:
    """The texts of each tensor that is used, by its name.

    Args:
        tensors: In the order of the request, in which their bytes follow each other.
        binary: What came after the JSON.
        names: Of those that are used; others may be of any type.

    Raises:
        InvalidRequest: A tensor that cannot be read, or bytes that belong to none.
    """
    texts: dict[str, list[str]] = {}
    for tensor in tensors:
        if tensor.name in texts:
            raise invalid(tensor.name, "is given twice")
        size = (tensor.parameters or {}).get(SIZE_PARAMETER)
        own = memoryview(b"")
        if size is not None:
            is_number = isinstance(size, int) and not isinstance(size, bool)
            if not is_number or not 0 <= size <= len(binary):
                raise invalid(
                    tensor.name, f"{SIZE_PARAMETER} must be a number of bytes that follow the JSON"
                )
            own, binary = binary[:size], binary[size:]
        if tensor.name in names:
            _check_type(tensor)
            elements = _json_texts(tensor) if size is None else _binary_texts(tensor.name, own)
            _check_shape(tensor, len(elements))
            texts[tensor.name] = elements
    if len(binary):
        raise InvalidRequest(f"body: {len(binary)} bytes after the JSON belong to no input")
    return texts


def _check_type(tensor: TensorIn) -> None:
    if tensor.datatype != TEXT_TYPE:
        shown = tensor.datatype[:MAX_SHOWN_CHARS]
        raise invalid(tensor.name, f"datatype must be {TEXT_TYPE}, got {shown!r}")
    if SHARED_MEMORY in (tensor.parameters or {}):
        raise invalid(tensor.name, "shared memory is not there; send the data")


def _check_shape(tensor: TensorIn, n_elements: int) -> None:
    shape = tensor.shape
    if min(shape) < 0 or shape[1:] not in ([], [1]):
        raise invalid(tensor.name, "shape must be [n] or [n, 1]")
    if math.prod(shape) != n_elements:
        raise invalid(tensor.name, f"the shape does not fit the data of {n_elements} elements")


def _json_texts(tensor: TensorIn) -> list[str]:
    elements: list[Any] = []
    for item in tensor.data or ():
        if isinstance(item, list):
            elements += item  # nested as the shape says; flat is allowed as well
        else:
            elements.append(item)
    for number, element in enumerate(elements):
        if not isinstance(element, str):
            raise invalid(tensor.name, f"data[{number}] must be a string")
    return elements


def _binary_texts(name: str, binary: memoryview) -> list[str]:
    texts: list[str] = []
    at = 0
    while at < len(binary):
        if len(binary) - at < LENGTH.size:
            raise invalid(name, "its bytes end within the length of an element")
        (size,) = LENGTH.unpack_from(binary, at)
        at += LENGTH.size
        if size > len(binary) - at:
            raise invalid(name, f"element {len(texts)} is longer than the bytes that are left")
        try:
            texts.append(str(binary[at : at + size], "utf-8"))
        except UnicodeDecodeError:
            raise invalid(name, f"element {len(texts)} is not UTF-8") from None
        at += size
    return texts


def output_body(
    head: dict[str, Any],
    outputs: Sequence[tuple[str, Sequence[float], bool]],
    shape: Sequence[int],
) -> tuple[bytes, int | None]:
    """The answer's body.

    Args:
        head: All fields but `outputs`.
        outputs: Name, values and whether they go as bytes, for each.
        shape: Of each.

    Returns:
        body: JSON with all digits of the values; with the bytes of those that go as bytes, which
            are rounded to FP32.
        json_bytes: How much of it is JSON, where it is not all of it.
    """
    tensors: list[dict[str, Any]] = []
    tail = b""
    for name, values, as_bytes in outputs:
        tensor: dict[str, Any] = {"name": name, "datatype": "FP32", "shape": list(shape)}
        if as_bytes:
            raw = np.asarray(values, "<f4").tobytes()
            tensor["parameters"] = {SIZE_PARAMETER: len(raw)}
            tail += raw
        else:
            tensor["data"] = list(values)
        tensors.append(tensor)
    content = orjson.dumps({**head, "outputs": tensors})
    return content + tail, len(content) if tail else None
