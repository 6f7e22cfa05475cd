"""What stands below each figure: in numbers what it shows, and what to mind when reading it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from model_export.report.number_text import limit, number

Part = Mapping[str, Any]


def agreement(scatter: Part) -> str:
    """What is drawn, when it is not all."""
    n, n_shown = scatter["n_pairs"], len(scatter["change"])
    if n == n_shown:
        return f"All {n:,} pairs; uncalibrated scores."
    return (
        f"{n_shown:,} of {n:,} pairs: those whose score moved most, and of the others some, "
        "evenly along the score. Uncalibrated."
    )


def worst_score_tolerance(document: Part) -> float | None:
    """The last stage's, which is the served graph's."""
    limits = [row["tolerance"] for row in document["parity"] if row["figure"] == "worst_score"]
    return limits[-1] if limits else None


def change(document: Part) -> str:
    """In numbers what the figure shows."""
    row, tolerance = document["score_change"][0], worst_score_tolerance(document)
    tolerated = f" of a tolerated {limit(tolerance)}" if tolerance is not None else ""
    return (
        f"Half of the scores move by at most {number(row['median'])}, 99 in 100 by at most "
        f"{number(row['p99'])}; the worst by {number(row['worst'])}{tolerated}."
    )


def spread(part: Part) -> str:
    """What was compared."""
    return (
        f"{part['n_pairs']:,} pairs, each scored alone, in a micro-batch of neighbours in length, "
        "in a large batch and padded beside the longest pair. Largest change from alone."
    )


def reliability(part: Part, facts: Part) -> str:
    """Whether the points may be believed, and what the bars are."""
    if part["after_is_held_out"]:
        honesty = "After: each pair by a map that was fitted without it."
    else:
        fitted_on = facts["score_calibration"].get("fitted_on", "")
        honesty = f"The map was fitted on: {fitted_on}. On its own pairs it looks its best."
    return f"Bins of equally many pairs; bars are 95 % Wilson intervals. {honesty}"


def histogram(part: Part) -> str:
    """How many pairs there are of each kind."""
    kinds = ", ".join(f"{one['n_pairs']:,} {one['name']}" for one in part["series"])
    return f"{kinds}. After score calibration, in bins of 0.05."


def lengths(part: Part) -> str:
    """How much text was lost."""
    n, cut = part["n_pairs"], part["n_truncated"]
    return (
        f"{n:,} {part['pairs']}, mean {part['mean_tokens']:.1f} tokens; {cut:,} "
        f"({100 * cut / n:.1f} %) were truncated to {part['limit_tokens']:,}."
    )
