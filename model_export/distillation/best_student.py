"""The best student so far, in a folder that outlives a run that is stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from model_export.checkpoint import Checkpoint
from model_export.distillation.recipe import REPORT_FILE
from model_export.distillation.report import DistilReport, Epoch, best_of, read_epochs
from model_export.evaluate import Quality
from model_export.out_folder import write_report
from model_export.write_checkpoint import save_checkpoint


class BestStudent:
    """Judges of each epoch whether it is the best one, keeps that one, and tells."""

    def __init__(
        self, folder: Path, teacher: Checkpoint, report: DistilReport, tell: Callable[[str], None]
    ) -> None:
        """Go on from what the folder holds.

        Args:
            folder: Gets the best epoch's checkpoint, and after each epoch the report.
            teacher: Whose tokenizer and longest pair are the student's too.
            report: Of the run, before its first epoch.
            tell: Told a line of each epoch.

        Raises:
            ExportError: The report of the stopped run cannot be read.
        """
        self.folder = folder
        self._teacher, self._tell = teacher, tell
        epochs = read_epochs(folder)
        self.report = replace(report, epochs=epochs, best=best_of(epochs))
        self._started_s = time.monotonic()

    def take(self, model: Any, number: float, quality: Mapping[str, Quality]) -> None:  # noqa: ANN401  # untyped library
        """Look at the student after an epoch.

        A run that went on from before the end of an epoch comes to that end again; what had been
        said of it is replaced, and it is written again if it is the best.

        Args:
            model: The whole student.
            number: Epochs done.
            quality: Its figures by dev file.
        """
        earlier = tuple(epoch for epoch in self.report.epochs if epoch.epoch < number)
        now = Epoch(number, mean_auc(quality), dict(quality))
        before = best_of(earlier)
        is_best = before is None or now.mean_auc > before.mean_auc
        self.report = replace(
            self.report,
            epochs=(*earlier, now),
            best=now if is_best else before,
            training_s=round(time.monotonic() - self._started_s, 1),
        )
        if is_best:
            tokens = self._teacher.max_length_tokens
            save_checkpoint(model, self._teacher.tokenizer, self.folder, tokens)
        write_report(self.folder, REPORT_FILE, self.report)
        self._tell(f"epoch {number:g}: mean AUC {now.mean_auc:.4f}{', kept' if is_best else ''}")


def mean_auc(quality: Mapping[str, Quality]) -> float:
    """Over the files that have one."""
    known = [figures.auc for figures in quality.values() if figures.auc is not None]
    return sum(known) / len(known)
