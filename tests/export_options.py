"""Options of an export that measures nothing which only people read."""

from __future__ import annotations

from model_export.options import ExportOptions, Precision


def quick(precision: Precision, **others: object) -> ExportOptions:
    """Without latency, which takes seconds."""
    return ExportOptions(precision=precision, with_latency=False, **others)  # type: ignore[arg-type]  # checked by the class
