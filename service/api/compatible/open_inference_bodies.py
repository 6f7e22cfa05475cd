"""The bodies of the Open Inference Protocol V2."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from service.api.compatible.calls import LenientBody
from service.api.compatible.tensors import TensorIn

MAX_TENSORS = 16


class OutputWanted(LenientBody):
    """An output: `score`, or `logit` for the number before calibration."""

    name: str
    parameters: dict[str, Any] | None = Field(
        default=None, description="`binary_data`: as bytes after the JSON."
    )


class InferRequest(LenientBody):
    """Queries and ads: one query for all, or one for each."""

    id: str | None = None
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="`timeout` in microseconds, `priority` (over 1 is bulk work), "
        "`binary_data_output`.",
    )
    inputs: list[TensorIn] = Field(fail_fast=True, max_length=MAX_TENSORS)
    outputs: list[OutputWanted] | None = Field(default=None, fail_fast=True, max_length=MAX_TENSORS)


class TensorOut(BaseModel):
    """FP32. `data` as JSON, or `parameters.binary_data_size` bytes after the JSON."""

    name: str
    datatype: str
    shape: list[int]
    parameters: dict[str, int] | None = None
    data: list[float] | None = None


class InferResponse(BaseModel):
    """The outputs, in the order asked; each has the shape of the input `ad`."""

    model_name: str
    model_version: str
    id: str | None = None
    outputs: list[TensorOut]


class TensorMetadata(BaseModel):
    """A tensor of the model; -1 is any number."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """What the model takes and gives."""

    name: str
    versions: list[str]
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]


class ServerMetadata(BaseModel):
    """Which server this is."""

    name: str
    version: str
    extensions: list[str]
