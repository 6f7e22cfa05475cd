"""What the reports that trainings leave beside a model say against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model_export.distillation.recipe import REPORT_FILE as DISTIL_REPORT_FILE
from model_export.evaluate import nothing_learnt
from model_export.recipe import RANKING_LOSSES
from model_export.recipe import REPORT_FILE as FINETUNE_REPORT_FILE


def doubt_of(folder: Path) -> str | None:
    """A sentence where the training of the model in a folder ended below chance, else None.

    None too where there is no report, or none that says how good the model is.
    """
    for name, auc_of in ((FINETUNE_REPORT_FILE, _finetuned), (DISTIL_REPORT_FILE, _distilled)):
        try:
            auc = auc_of(json.loads((folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
            continue  # other tools write reports too, and no export depends on one
        if auc is not None and (sentence := nothing_learnt(auc)):
            return f"{sentence} ({name}); train it on more or other pairs before it serves"
    return None


def _finetuned(report: Mapping[str, Any]) -> float | None:
    """Mean AUC of the dev files; None after a ranking loss, which is not after it."""
    if report["recipe"].get("loss") in RANKING_LOSSES:
        return None
    known = [q["auc"] for q in report["quality"].values() if q["auc"] is not None]
    return float(sum(known) / len(known))


def _distilled(report: Mapping[str, Any]) -> float:
    return float(report["best"]["mean_auc"])
