"""What the reports that trainings leave beside a model say against it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from model_export.distillation.recipe import REPORT_FILE as DISTIL_REPORT_FILE
from model_export.evaluate import nothing_learnt
from model_export.recipe import REPORT_FILE as FINETUNE_REPORT_FILE


def doubt_of(folder: Path) -> str | None:
    """A sentence where the training of the model in a folder ended below chance, else None.

    None too where there is no report, or none that says how good the model is.
    """
    for name, said in ((FINETUNE_REPORT_FILE, _finetuned), (DISTIL_REPORT_FILE, _distilled)):
        try:
            sentence = said(json.loads((folder / name).read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError):
            continue  # other tools write reports too, and no export depends on one
        if sentence:
            return f"{sentence} ({name}); train it on more or other pairs before it serves"
    return None


def _finetuned(report: Mapping[str, Any]) -> str | None:
    sentence = report["learnt_nothing"]
    return sentence if isinstance(sentence, str) else None


def _distilled(report: Mapping[str, Any]) -> str | None:
    return nothing_learnt(float(report["best"]["mean_auc"]))
