"""How tests export: without what takes time and which only people read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from model_export.options import ExportOptions, Precision


def quick(precision: Precision, **others: object) -> ExportOptions:
    """Without latency, which takes seconds."""
    return ExportOptions(precision=precision, with_latency=False, **others)  # type: ignore[arg-type]  # checked by the class


@contextmanager
def without_figures() -> Iterator[None]:
    """Reports have empty figures: to draw them takes half the time of a small model's export."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("model_export.report.figures.svg_of", lambda *_: "<svg></svg>")
        yield
