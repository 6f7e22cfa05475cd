"""The default model in the forms that the peers serve: fp32 graph, plain int8 graph, checkpoint."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

EXPORT_S = 600


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """Where they are.

    Attributes:
        fp32: ONNX graph, fused.
        int8: The same, by ONNX Runtime's dynamic quantization with its defaults.
        tokenizer: `tokenizer.json` for all of them.
        checkpoint: Folder for transformers, the adapter merged in.
    """

    fp32: Path
    int8: Path
    tokenizer: Path
    checkpoint: Path


def make_models(work: Path) -> ModelFiles:
    """Make in the work folder what is not there yet.

    Raises:
        subprocess.SubprocessError: The export failed.
    """
    bundle = work / "fp32"
    files = ModelFiles(
        fp32=bundle / "model.onnx",
        int8=work / "plain_int8.onnx",
        tokenizer=bundle / "tokenizer.json",
        checkpoint=work / "checkpoint",
    )
    if not bundle.exists():
        command = [sys.executable, "-m", "model_export", "export", "--precision", "fp32"]
        subprocess.run([*command, "--out", bundle], check=True, timeout=EXPORT_S)  # noqa: S603
    if not files.int8.exists():
        _quantize(files.fp32, files.int8)
    if not files.checkpoint.exists():
        _save_checkpoint(files.checkpoint)
    return files


def _quantize(fp32: Path, int8: Path) -> None:
    from onnx import TensorProto  # noqa: PLC0415  # only when something is to be made
    from onnxruntime.quantization import QuantType, quantize_dynamic  # noqa: PLC0415

    quantize_dynamic(
        fp32,
        int8,
        weight_type=QuantType.QInt8,
        # Shape inference does not see through the fused operators.
        extra_options={"DefaultTensorType": TensorProto.FLOAT},
    )


def _save_checkpoint(folder: Path) -> None:
    from model_export.shipped_models import DEFAULT_MODEL, load_shipped  # noqa: PLC0415

    checkpoint = load_shipped(DEFAULT_MODEL)
    checkpoint.model.save_pretrained(folder)
    checkpoint.tokenizer.save_pretrained(folder)
