"""Who is measured: how each server is started and spoken to, and in which settings."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from deploy.benchmarks.mixed_pairs import MixedRequest
from deploy.benchmarks.peers.environments import python_of
from deploy.benchmarks.peers.models import ModelFiles
from service.scoring.bundle_files import read_manifest
from service.scoring.calibration import Identity, ScoreCalibration

# How far a score may be from that of the same pair alone. One scale for a whole tensor makes a
# score depend on its batch mates: this only tells a wrong model from a coarse one.
INT8_TOLERANCE = 0.6
TORCH_TOLERANCE = 1e-3
ROWWISE_TOLERANCE = 0.25  # against fp32

BY_HAND = "--micro-batch"

IDENTITY = Identity()

TIMEOUT_MS = 10_000

# The fastest on 2 cores come first; `--all-settings` measures all. Those with `--micro-batch` sort
# a request's pairs by length and cut them, which is our code and nothing that the server brings:
# what it gives as it is installed is the first setting without it. Both are measured.
SETTINGS: dict[str, tuple[str, ...]] = {
    "naive": (
        "--threads 1 --runs-at-once 2 --micro-batch 8",
        "--threads 0 --runs-at-once 1",
        "--threads 1 --runs-at-once 2",
        "--threads 0 --runs-at-once 8",
    ),
    "litserve": (
        "--workers 2 --micro-batch 8",
        "--workers 2",
        "--workers 2 --max-batch-requests 2 --wait-ms 2",
        "--workers 1 --threads 0 --max-batch-requests 2 --wait-ms 2",
    ),
    "mosec": (
        "--workers 2 --micro-batch 8",
        "--workers 2",
        "--workers 2 --max-batch-requests 2 --wait-ms 2",
        "--workers 1 --threads 0 --max-batch-requests 2 --wait-ms 2",
    ),
    "mlserver": (
        "--runs-at-once 2 --micro-batch 8",
        "--runs-at-once 2",
        "--workers 2",
        "--runs-at-once 2 --max-batch-requests 2 --wait-ms 2",
    ),
    "infinity": ("--batch-size 32", "--batch-size 8"),
}


@dataclass(frozen=True)
class Contender:
    """One row of the table.

    Attributes:
        name: Of the server.
        setting: Its options.
        command: Program and arguments, less the port.
        path: Of the URL.
        body: Makes the request.
        scores: Reads the answer, in the order of the ads.
        reference: The graph whose scores these should be, pair by pair.
        tolerance: Largest difference from them.
        calibration: What lies between the graph's logit and the score.
        environ: Variables on top of ours.
    """

    name: str
    setting: str
    command: tuple[str, ...]
    path: str
    body: Callable[[MixedRequest], Any]
    scores: Callable[[Any], list[float]]
    reference: Path
    tolerance: float
    calibration: ScoreCalibration = IDENTITY
    environ: Mapping[str, str] = field(default_factory=dict)

    def body_bytes(self, request: MixedRequest) -> bytes:
        """What is posted."""
        return json.dumps(self.body(request)).encode()


def peers(work: Path, files: ModelFiles, name: str, all_settings: bool) -> list[Contender]:
    """One peer: its best setting, with and without our sorting by hand; or all settings."""
    settings: Sequence[str] = SETTINGS[name]
    if not all_settings:
        as_shipped = next(one for one in settings if BY_HAND not in one)
        settings = [*(one for one in settings if BY_HAND in one), as_shipped]
    make = _infinity if name == "infinity" else _onnx_peer
    return [make(work, files, name, setting) for setting in settings]


def adrel(name: str, bundle: Path, environ: Mapping[str, str], files: ModelFiles) -> Contender:
    """This repository's service with any bundle of the default model."""
    rowwise = "rowwise" in read_manifest(bundle).precision.recipe
    return Contender(
        name=name,
        setting=" ".join(f"{key}={value}" for key, value in environ.items()),
        command=(sys.executable, "-m", "service", "--bundle", str(bundle), "--log-level", "error"),
        path="/v1/score",
        body=lambda request: {
            "query": request.query,
            "ads": [{"id": str(i), "text": text} for i, text in enumerate(request.ads)],
            "timeout_ms": TIMEOUT_MS,
        },
        scores=lambda answer: [ad["score"] for ad in answer["scores"]],
        reference=files.fp32,
        tolerance=ROWWISE_TOLERANCE if rowwise else INT8_TOLERANCE,
        calibration=read_manifest(bundle).score_calibration,
        environ=environ,
    )


def _onnx_peer(work: Path, files: ModelFiles, name: str, setting: str) -> Contender:
    command = (
        *(str(python_of(work, name)), "-m", f"deploy.benchmarks.peers.{name}_server"),
        *("--model", str(files.int8), "--tokenizer", str(files.tokenizer), *setting.split()),
    )
    speaks_tensors = name == "mlserver"
    return Contender(
        name=name,
        setting=setting,
        command=command,
        path="/v2/models/ranker/infer" if speaks_tensors else "/score",
        body=_tensors if speaks_tensors else _plain_body,
        scores=_tensor_scores if speaks_tensors else lambda answer: list(answer["scores"]),
        reference=files.int8,
        tolerance=INT8_TOLERANCE,
    )


def _infinity(work: Path, files: ModelFiles, name: str, setting: str) -> Contender:
    program = python_of(work, name).parent / "infinity_emb"
    return Contender(
        name=name,
        setting=f"torch fp32 {setting}",
        command=(
            *(str(program), "v2", "--model-id", str(files.checkpoint), "--engine", "torch"),
            *("--served-model-name", "ranker", "--device", "cpu", "--dtype", "float32"),
            *("--host", "127.0.0.1", "--log-level", "warning"),
            *("--no-bettertransformer", *setting.split()),  # slower with it, and hard to install
        ),
        path="/rerank",
        body=lambda request: {
            "model": "ranker",
            "query": request.query,
            "documents": request.ads,
        },
        scores=_rerank_scores,
        reference=files.fp32,
        tolerance=TORCH_TOLERANCE,
        environ={"HF_HUB_OFFLINE": "1", "INFINITY_ANONYMOUS_USAGE_STATS": "0"},
    )


def _plain_body(request: MixedRequest) -> dict[str, Any]:
    return {"query": request.query, "ads": request.ads}


def _tensors(request: MixedRequest) -> dict[str, Any]:
    texts = {"query": [request.query] * len(request.ads), "ad": request.ads}
    tensor = {"datatype": "BYTES", "shape": [len(request.ads)]}
    return {"inputs": [{"name": name, "data": data, **tensor} for name, data in texts.items()]}


def _tensor_scores(answer: Any) -> list[float]:  # noqa: ANN401  # JSON
    return list(answer["outputs"][0]["data"])


def _rerank_scores(answer: Any) -> list[float]:  # noqa: ANN401  # JSON
    by_index = {result["index"]: result["relevance_score"] for result in answer["results"]}
    return [by_index[index] for index in range(len(by_index))]
