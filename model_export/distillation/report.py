"""What a distillation tells of itself: `distil_report.json` beside the student."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from model_export.distillation.recipe import REPORT_FILE, DistilRecipe
from model_export.errors import ExportError
from model_export.evaluate import Quality


@dataclass(frozen=True, slots=True)
class Epoch:
    """The student after an epoch; `mean_auc` over the dev files decides which one is kept."""

    epoch: float
    mean_auc: float
    quality: dict[str, Quality]


@dataclass(frozen=True, slots=True)
class DistilReport:
    """What was trained, how long it took and how good it is (scores without calibration).

    Attributes:
        recipe: All hyper-parameters.
        teacher: Its name.
        teacher_sha256: Of its weights, as in a bundle's manifest.
        layers: Numbers of the teacher's layers that the student started from.
        start: Report of the run that made the student which this one went on from.
        n_labelled: Training pairs with a label.
        n_unlabelled: Training pairs without.
        teacher_quality: Of the teacher, by name of the dev file.
        epochs: Each epoch so far. The dev pairs chose the best of so many.
        best: The one that is kept.
        training_s: Seconds of this run so far, without the teacher's; of a resumed one, since then.
    """

    recipe: DistilRecipe
    teacher: str
    teacher_sha256: str
    layers: tuple[int, ...]
    n_labelled: int
    n_unlabelled: int
    teacher_quality: dict[str, Quality]
    epochs: tuple[Epoch, ...] = field(default_factory=tuple)
    best: Epoch | None = None
    training_s: float = 0.0
    start: Mapping[str, Any] | None = None


def read_report(folder: Path) -> dict[str, Any]:
    """The report that `distil` wrote beside a student.

    Raises:
        ExportError: There is none, or it does not say which layers the student has.
    """
    path = folder / REPORT_FILE
    if not path.is_file():
        raise ExportError(f"{folder} is no student that distil wrote: it has no {REPORT_FILE}")
    try:
        report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        report["layers"] = [int(number) for number in report["layers"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{path} is no report of distil: {error!r}") from error
    return report


def read_epochs(folder: Path) -> tuple[Epoch, ...]:
    """The epochs that a run had judged before it was stopped; none where it had come to none.

    Raises:
        ExportError: See `read_report`.
    """
    if not (folder / REPORT_FILE).is_file():
        return ()
    return tuple(
        Epoch(
            epoch["epoch"],
            epoch["mean_auc"],
            {name: Quality(**figures) for name, figures in epoch["quality"].items()},
        )
        for epoch in read_report(folder)["epochs"]
    )


def best_of(epochs: Sequence[Epoch]) -> Epoch | None:
    """That with the highest mean AUC, of equally good ones the first; None of none."""
    return max(epochs, key=lambda epoch: epoch.mean_auc, default=None)
