"""What an export saw, handed to its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from model_export.calibration_fit import CalibrationFit
from model_export.options import ExportOptions
from model_export.proof import Measured, Proof
from model_export.report.evidence import Evidence, ParityStage
from model_export.report.latency import Latency, machine_facts, measure_latency
from service.scoring.bulk import LogitModel
from service.scoring.calibration import Scores
from service.scoring.manifest import Manifest


def evidence_of(
    proof: Proof,
    stages: Sequence[Measured],
    manifest: Manifest,
    scores: Scores,
    fit: CalibrationFit | None,
    options: ExportOptions,
) -> Evidence:
    """All that the report shows; measures the latency on the way.

    Args:
        proof: The pairs and the original's logits.
        stages: What was measured; the graph in the bundle last.
        manifest: As written.
        scores: (n,) calibrated scores of all pairs.
        fit: How the score calibration was chosen; None where it was not fitted here.
        options: Whether to measure the latency; a GPU's is not to be had from the CPU here.
    """
    fp32, served = stages[0], stages[-1]
    labels = [float(pair.label) for pair in proof.labelled]
    quality = manifest.quality
    return Evidence(
        texts=proof.texts,
        n_made=proof.n_made,
        labels=np.array(labels) if labels else None,
        lengths_tokens=np.array([pair.length_tokens for pair in proof.encoded]),
        truncated=np.array([pair.truncated for pair in proof.encoded]),
        reference_scores=proof.scores(proof.reference),
        fp32_scores=proof.scores(fp32.logits),
        served_scores=proof.scores(served.logits),
        calibrated_scores=scores,
        spread=served.spread,
        stages=[ParityStage(s.stage, s.figures, asdict(s.tolerances)) for s in stages],
        quality={name: quality[name] for name in ("torch", "served") if name in quality},
        facts=manifest.model_dump(mode="json"),
        calibration_rows=fit.rows() if fit else (),
        held_out_scores=fit.held_out_scores if fit else None,
        latency=_latency(proof, stages) if options.with_latency and not options.for_gpu else None,
    )


def _latency(proof: Proof, stages: Sequence[Measured]) -> Latency | None:
    models: dict[str, LogitModel] = {stage.precision: stage.model for stage in stages}
    return measure_latency(models, proof.encoded, machine_facts())
