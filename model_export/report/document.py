"""From the evidence to `report.json`: every number of the page, ready to be drawn."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_export.metrics import brier, expected_calibration_error, log_loss, rank_correlation
from model_export.parity import AT_LEAST, is_met
from model_export.report.evidence import Evidence, ParityStage
from model_export.report.shown_text import shown_text
from model_export.report.summaries import (
    counts_between,
    length_edges,
    points_to_show,
    reliability_points,
    spread_classes,
)

REPORT_VERSION = 1
SIGNIFICANT_DIGITS = 5
N_WORST_PAIRS = 10
SCORE_EDGES = tuple(round(0.05 * step, 2) for step in range(21))
QUANTILES = (0.5, 0.9, 0.99)


def report_json(evidence: Evidence) -> dict[str, Any]:
    """All that the page shows, in plain JSON types: floats rounded, what is not a number None.

    The same evidence gives the same document.
    """
    change = evidence.served_scores - evidence.reference_scores
    worst_first = points_to_show(evidence.reference_scores, change)
    document = {
        "report_version": REPORT_VERSION,
        "n_pairs": {
            "made": evidence.n_made,
            "labelled": len(evidence.texts) - evidence.n_made,
        },
        "parity": [row for stage in evidence.stages for row in _parity_rows(stage)],
        "score_change": _score_change(evidence, change),
        "scatter": {
            "n_pairs": len(change),
            "reference": evidence.reference_scores[worst_first].tolist(),
            "served": evidence.served_scores[worst_first].tolist(),
            "change": change[worst_first].tolist(),
        },
        "spread": {
            "n_pairs": len(evidence.spread),
            "worst": float(evidence.spread.max()),
            "classes": spread_classes(evidence.spread),
        },
        "quality": {side: dict(figures) for side, figures in evidence.quality.items()},
        "reliability": _reliability(evidence),
        "calibration_candidates": [dict(row) for row in evidence.calibration_rows],
        "score_histogram": _score_histogram(evidence),
        "lengths": _lengths(evidence),
        "latency": None if evidence.latency is None else asdict(evidence.latency),
        "worst_pairs": _worst_pairs(evidence, change),
    }
    rounded: dict[str, Any] = plain(document, SIGNIFICANT_DIGITS)
    return rounded | {"facts": plain(dict(evidence.facts))}


def plain(value: Any, digits: int | None = None) -> Any:  # noqa: ANN401  # JSON of any shape
    """`value` in JSON's own types: NumPy's unwrapped, floats rounded, NaN and infinity None.

    Args:
        value: Nested mappings, sequences, numbers and strings.
        digits: Significant digits that floats keep; None keeps all.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(item, digits) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item, digits) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item(), digits)
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return value if digits is None else float(f"{value:.{digits}g}")
    return value


def _parity_rows(stage: ParityStage) -> list[dict[str, Any]]:
    rows = []
    for figure, tolerance in stage.tolerances.items():
        if figure not in stage.figures:  # a loss without labelled pairs
            continue
        value = float(stage.figures[figure])
        rule = "at least" if figure == AT_LEAST else "at most"
        passed = is_met(figure, value, tolerance)
        rows.append({"stage": stage.name, "figure": figure, "value": value, "passed": passed,
                     "tolerance": tolerance, "rule": rule})  # fmt: skip
    return rows


def _score_change(evidence: Evidence, change: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Of all pairs, and of the made and the labelled ones where there are both."""
    subsets = {"all": slice(None)}
    if 0 < evidence.n_made < len(change):
        subsets["made"] = slice(0, evidence.n_made)
        subsets["labelled"] = slice(evidence.n_made, None)
    rows = []
    for name, subset in subsets.items():
        size = np.abs(change[subset])
        median, p90, p99 = np.quantile(size, QUANTILES)
        rank = rank_correlation(evidence.reference_scores[subset], evidence.served_scores[subset])
        rows.append({"pairs": name, "n_pairs": len(size), "mean": size.mean(), "median": median,
                     "p90": p90, "p99": p99, "worst": size.max(),
                     "mean_signed": change[subset].mean(), "rank_agreement": rank})  # fmt: skip
    return rows


def _reliability(evidence: Evidence) -> dict[str, Any] | None:
    if evidence.labels is None:
        return None
    rows = evidence.shown_pairs
    held_out = evidence.held_out_scores
    after = evidence.calibrated_scores[rows] if held_out is None else held_out
    sides = {"before": evidence.served_scores[rows], "after": after}
    return {"after_is_held_out": held_out is not None} | {
        side: {
            "bins": reliability_points(evidence.labels, scores),
            "calibration_error": expected_calibration_error(evidence.labels, scores),
            "brier": brier(evidence.labels, scores),
            "log_loss": log_loss(evidence.labels, scores),
        }
        for side, scores in sides.items()
    }


def _score_histogram(evidence: Evidence) -> dict[str, Any]:
    scores = evidence.calibrated_scores[evidence.shown_pairs]
    if evidence.labels is None:
        series = {"made pairs": scores}
    else:
        relevant = evidence.labels > 0.5
        series = {"relevant": scores[relevant], "not relevant": scores[~relevant]}
    return {
        "edges": SCORE_EDGES,
        "series": [
            {"name": name, "n_pairs": len(values), "counts": counts_between(values, SCORE_EDGES)}
            for name, values in series.items()
        ],
    }


def _lengths(evidence: Evidence) -> dict[str, Any]:
    lengths = evidence.lengths_tokens[evidence.shown_pairs]
    truncated = evidence.truncated[evidence.shown_pairs]
    limit = int(evidence.facts["inputs"]["max_length_tokens"])
    edges = length_edges(limit)
    return {
        "pairs": "made pairs" if evidence.labels is None else "labelled pairs",
        "n_pairs": len(lengths),
        "n_truncated": int(truncated.sum()),
        "limit_tokens": limit,
        "mean_tokens": lengths.mean(),
        "edges_tokens": edges,
        "whole": counts_between(lengths[~truncated], edges),
        "truncated": counts_between(lengths[truncated], edges),
    }


def _worst_pairs(evidence: Evidence, change: NDArray[np.float64]) -> list[dict[str, Any]]:
    rows = []
    for index in np.argsort(-np.abs(change), kind="stable")[:N_WORST_PAIRS]:
        query, ad = evidence.texts[index]
        row = {
            "query": shown_text(query),
            "ad": shown_text(ad),
            "reference": evidence.reference_scores[index],
            "fp32": evidence.fp32_scores[index],
            "served": evidence.served_scores[index],
            "change": change[index],
        }
        if evidence.labels is not None and index >= evidence.n_made:
            row["label"] = evidence.labels[index - evidence.n_made]
        rows.append(row)
    return rows
