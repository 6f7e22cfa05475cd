"""The bodies of the Open Inference Protocol V2."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from service.api.compatible.calls import LenientBody
from service.api.compatible.tensors import TensorIn

MAX_TENSORS = 16


class OutputWanted(LenientBody):
    """An output: `score`, or `logit` for the number before calibration."""

    name: str = Field(description="`score` or `logit`.")
    parameters: dict[str, Any] | None = Field(
        default=None, description="`binary_data`: as bytes after the JSON."
    )


class InferRequest(LenientBody):
    """Queries and ads: one query for all, or one for each."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "7",
                    "parameters": {"timeout": 250_000, "priority": 1},
                    "inputs": [
                        {
                            "name": "query",
                            "shape": [1],
                            "datatype": "BYTES",
                            "data": ["best running shoes"],
                        },
                        {
                            "name": "ad",
                            "shape": [2],
                            "datatype": "BYTES",
                            "data": ["Marathon Elite Shoes", "Printer Ink Outlet"],
                        },
                    ],
                    "outputs": [{"name": "score"}],
                }
            ]
        }
    )

    id: str | None = Field(default=None, description="Echoed.")
    parameters: dict[str, Any] | None = Field(
        default=None,
        description="`timeout` in microseconds (0: {default_timeout_ms} ms; more than "
        "{max_timeout_ms} ms is taken as that), `priority` (over 1 is bulk work), "
        "`binary_data_output`.",
    )
    inputs: list[TensorIn] = Field(
        fail_fast=True,
        max_length=MAX_TENSORS,
        description="`query` (one row, or one for each ad) and `ad`.",
    )
    outputs: list[OutputWanted] | None = Field(
        default=None,
        fail_fast=True,
        max_length=MAX_TENSORS,
        description="Which, in this order; `score` where none is named.",
    )


class TensorOut(BaseModel):
    """FP32. `data` as JSON, or `parameters.binary_data_size` bytes after the JSON."""

    name: str = Field(description="`score` or `logit`.")
    datatype: str = Field(description="FP32.")
    shape: list[int] = Field(description="That of the input `ad`.")
    parameters: dict[str, int] | None = Field(
        default=None, description="`binary_data_size`, where the data comes after the JSON."
    )
    data: list[float] | None = Field(default=None, description="One for each ad, with all digits.")


class InferResponse(BaseModel):
    """The outputs, in the order asked; each has the shape of the input `ad`."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "model_name": "adrel-minilm-l6",
                    "model_version": "07a79ee3df85",
                    "id": "7",
                    "outputs": [
                        {
                            "name": "score",
                            "datatype": "FP32",
                            "shape": [2],
                            "data": [0.8410663532199538, 0.0037639713142615873],
                        }
                    ],
                }
            ]
        }
    )

    model_name: str = Field(description="The model that gave them.")
    model_version: str = Field(description="Its version.")
    id: str | None = Field(default=None, description="The request's, where it had one.")
    outputs: list[TensorOut] = Field(description="The tensors.")


class TensorMetadata(BaseModel):
    """A tensor of the model; -1 is any number."""

    name: str = Field(description="As requests name it.")
    datatype: str = Field(description="BYTES for texts, FP32 for numbers.")
    shape: list[int] = Field(description="Sizes of its axes.")


class ModelMetadata(BaseModel):
    """What the model takes and gives."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "adrel-minilm-l6",
                    "versions": ["07a79ee3df85"],
                    "platform": "onnxruntime_onnx",
                    "inputs": [
                        {"name": "query", "datatype": "BYTES", "shape": [-1]},
                        {"name": "ad", "datatype": "BYTES", "shape": [-1]},
                    ],
                    "outputs": [
                        {"name": "score", "datatype": "FP32", "shape": [-1]},
                        {"name": "logit", "datatype": "FP32", "shape": [-1]},
                    ],
                }
            ]
        }
    )

    name: str = Field(description="For the paths.")
    versions: list[str] = Field(description="The one that serves.")
    platform: str = Field(description="Runtime and format of the model.")
    inputs: list[TensorMetadata] = Field(description="What it takes.")
    outputs: list[TensorMetadata] = Field(description="What it gives.")


class ServerMetadata(BaseModel):
    """Which server this is."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "adrel",
                    "version": "0.1.0",
                    "extensions": ["binary_tensor_data", "parameters"],
                }
            ]
        }
    )

    name: str = Field(description="Of the product.")
    version: str = Field(description="Its release.")
    extensions: list[str] = Field(description="Parts beyond the protocol's core.")


class ServerLive(BaseModel):
    """The process answers."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"live": True}]})

    live: bool = Field(description="Always true.")


class ServerReady(BaseModel):
    """Scores can be served."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"ready": True}]})

    ready: bool = Field(description="Always true; 503 where it is not.")


class ModelReady(BaseModel):
    """This model can be asked."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "adrel-minilm-l6", "ready": True}]}
    )

    name: str = Field(description="Of the model.")
    ready: bool = Field(description="Always true; 503 where it is not.")
