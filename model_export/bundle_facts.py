"""The manifest's fields, from what an export knows and saw."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from model_export.calibration_fit import CalibrationFit
from model_export.evaluate import judge
from model_export.options import ExportOptions
from model_export.proof import Measured, Proof
from model_export.report.latency import TELLING_FLAGS
from service.scoring.calibration import ScoreCalibration, Scores, to_scores
from service.scoring.manifest import SCHEMA_VERSION
from service.scoring.target import cpu_flags

HISTOGRAM_BINS = 10

# Same graph, another CPU: integer products are exact, but exp and erf differ in the last bit
# between instruction sets, and int8 rounding can turn a last bit into one quantization step.
# fp16 is checked here on the CPU and served on a GPU, which adds in another order.
# int8: a relative change of 1e-6 of all floats moved a logit by up to .1.
GOLDEN_LOGIT_TOLERANCE = {"fp32": 1e-3, "fp16": 0.1, "int8": 0.2}
USUAL_LOGIT = 20.0  # of larger logits, float32 has coarser steps

TOOLS = ("torch", "transformers", "optimum", "optimum-onnx", "onnx", "onnxruntime", "tokenizers")


def bundle_facts(
    proof: Proof,
    stages: Sequence[Measured],
    options: ExportOptions,
    calibration: ScoreCalibration,
    fit: CalibrationFit | None,
    scores: Scores,
    note: str,
) -> dict[str, Any]:
    """Every field of the manifest but the version and the hashes.

    Args:
        proof: The checkpoint and the pairs.
        stages: What was measured; the graph to serve last.
        options: What was asked for.
        calibration: The map to serve.
        fit: How it was chosen; None where it was not fitted here.
        scores: (n,) calibrated scores of all pairs, for the histogram.
        note: Why the precision is not the asked-for one, if it is not.
    """
    checkpoint, served = proof.checkpoint, stages[-1]
    counts, _ = np.histogram(scores, bins=HISTOGRAM_BINS, range=(0.0, 1.0))
    template = checkpoint.template
    return {
        "schema_version": SCHEMA_VERSION,
        "model": {
            "name": checkpoint.name,
            "architecture": type(checkpoint.model).__name__,
            "source": checkpoint.source,
            "source_sha256": checkpoint.source_sha256,
        },
        "head": checkpoint.head.model_dump(),
        "inputs": {
            "names": list(served.model.input_names),
            "max_length_tokens": checkpoint.max_length_tokens,
            "pad_id": checkpoint.pad_id,
            "ad_text": {"fields": list(template.fields), "separator": template.separator},
        },
        "precision": {
            "weights": served.precision,
            "recipe": served.recipe,
            "target": options.target,
            "checked_on": _machine(),
            "note": note,
        },
        "score_calibration": calibration.model_dump(),
        "golden": {"logit_tolerance": _golden_tolerance(served)},
        "parity": {
            **{stage.precision: stage.figures for stage in stages},
            "tolerances": asdict(served.tolerances),
        },
        "quality": _quality(proof, served, calibration, fit),
        "score_histogram": [round(float(count) / len(scores), 4) for count in counts],
        "tool_versions": {tool: version(tool) for tool in TOOLS},
    }


def _golden_tolerance(served: Measured) -> float:
    largest = float(np.abs(served.logits).max())
    return GOLDEN_LOGIT_TOLERANCE[served.precision] * max(1.0, largest / USUAL_LOGIT)


def _machine() -> str:
    told = " ".join(flag for flag in TELLING_FLAGS if flag in cpu_flags())
    return f"{platform.machine()} CPU ({told or 'flags unknown'}), CPUExecutionProvider"


def _quality(
    proof: Proof, served: Measured, calibration: ScoreCalibration, fit: CalibrationFit | None
) -> dict[str, Any]:
    """Quality on the labelled pairs, of the original and of the graph to serve."""
    if fit is None:
        return {}

    def judged(logits: Any) -> dict[str, Any]:  # noqa: ANN401  # one of proof's arrays
        rows = proof.of_labelled(logits)
        return asdict(judge(proof.labelled, to_scores(rows, proof.checkpoint.head, calibration)))

    return {
        "torch": judged(proof.reference),
        "served": judged(served.logits),
        "score_calibration": fit.figures(),
    }
