"""Small evidence for the report's tests: seeded scores, no model."""

from __future__ import annotations

from typing import Any

import numpy as np

from model_export.report.evidence import Evidence, ParityStage
from model_export.report.latency import Latency, LatencyRow

FACTS: dict[str, Any] = {
    "model": {"name": "toy", "version": "abc123", "source": "a toy"},
    "inputs": {"max_length_tokens": 64},
    "precision": {"weights": "int8", "recipe": "rows"},
    "score_calibration": {"slope": 1.0, "intercept": 0.0, "fitted_on": "made pairs"},
    "parity": {},
}
FIGURES = {
    "worst_logit": 0.5,
    "mean_score": 0.01,
    "worst_score": 0.09,
    "rank_agreement": 0.9985,
    "batch_spread": 0.0,
    "n_pairs": 60,
}
TOLERANCES = {
    "worst_logit": 1.0,
    "mean_score": 0.016,
    "worst_score": 0.15,
    "rank_agreement": 0.99,
    "batch_spread": 0.0,
}
QUALITY = {
    "torch": {"auc": 0.9, "ndcg_at_10": 0.8, "pairs": 40, "log_loss": 0.4},
    "served": {"auc": 0.89, "ndcg_at_10": 0.8, "pairs": 40, "log_loss": 0.41},
}
CANDIDATES = (
    {"method": "identity", "log_loss": 0.62, "brier": 0.21, "ece": 0.11, "chosen": False},
    {"method": "platt", "log_loss": 0.54, "brier": 0.18, "ece": 0.03, "chosen": True},
)
LATENCY = Latency(
    rows=(
        LatencyRow("fp32", 1, 20.0, 50.0, 25),
        LatencyRow("int8", 1, 10.0, 100.0, 25),
        LatencyRow("fp32", 2, 36.0, 55.0, 25),
        LatencyRow("int8", 2, 18.0, 111.0, 25),
    ),
    pair_tokens=20,
    machine={"cpu": "a processor", "cores": 2, "onnxruntime": "1.0"},
)


def made_evidence(n_made: int = 20, n_labelled: int = 40, **changes: Any) -> Evidence:  # noqa: ANN401  # any field
    """Evidence of a good export on seeded scores; `changes` replaces single fields."""
    n = n_made + n_labelled
    rng = np.random.default_rng(7)
    reference = rng.uniform(0.05, 0.95, n)
    served = np.clip(reference + rng.normal(0, 0.01, n), 0, 1)
    labelled = served[n_made:]
    fields: dict[str, Any] = {
        "texts": [(f"query {i}", f"ad {i}") for i in range(n)],
        "n_made": n_made,
        "labels": (rng.uniform(size=n_labelled) < labelled).astype(float) if n_labelled else None,
        "lengths_tokens": rng.integers(5, 65, n),
        "truncated": rng.uniform(size=n) < 0.1,
        "reference_scores": reference,
        "fp32_scores": reference + 1e-7,
        "served_scores": served,
        "calibrated_scores": served**1.2,
        "spread": np.zeros(n),
        "stages": [ParityStage("torch against int8", FIGURES, TOLERANCES)],
        "quality": QUALITY if n_labelled else {},
        "facts": FACTS,
        "calibration_rows": CANDIDATES if n_labelled else (),
    }
    return Evidence(**fields | changes)
