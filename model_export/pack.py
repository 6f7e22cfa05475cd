"""From a student's checkpoint to its weight delta, and what the rounding has cost."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from model_export.checkpoint import load_checkpoint
from model_export.delta_checkpoint import load_delta_checkpoint
from model_export.distillation.recipe import REPORT_FILE
from model_export.distillation.report import read_report
from model_export.evaluate import Quality, judge
from model_export.held_out_margins import held_out_margins, write_calibration
from model_export.out_folder import move_into, partial_folder, write_report
from model_export.pairs import LabelledPair
from model_export.weight_delta import WEIGHTS_FILE, save_delta
from service.scoring.calibration import sigmoid

PACK_REPORT_FILE = "pack_report.json"


@dataclass(frozen=True, slots=True)
class PackReport:
    """What was written (scores without calibration).

    Attributes:
        n_bytes: Of the weights' file.
        mean_change: Mean absolute change of the held-out pairs' log-odds by rounding.
        before: Figures of the student, by name of the dev file.
        after: Figures of what was written, as read back from disk.
    """

    n_bytes: int
    mean_change: float
    before: dict[str, Quality]
    after: dict[str, Quality]


def pack(
    student: Path,
    base: str,
    dev: Mapping[str, Sequence[LabelledPair]],
    out: Path,
    *,
    max_bytes: int,
    tell: Callable[[str], None] = lambda _: None,
) -> PackReport:
    """Write the finest delta that fits, with the student's report and a score calibration.

    Args:
        student: Folder that `distil` wrote.
        base: Folder, hub id or package of the base weights of its teacher.
        dev: Held-out pairs by file; the calibration is fitted on all of them.
        out: Gets the files, in place of older ones.
        max_bytes: Most bytes of the weights' file.
        tell: Told what could not be calibrated.

    Raises:
        BaseWeightsMissing: The base was found nowhere.
        ExportError: The folder holds no student, or one that is not of that base or cannot be
            made as small as that.
    """
    layers = tuple(read_report(student)["layers"])
    whole = load_checkpoint(str(student), None, None)
    before = {name: held_out_margins(whole, pairs) for name, pairs in dev.items()}
    partial = partial_folder(out)
    save_delta(
        whole.model,
        base,
        layers,
        partial,
        max_bytes=max_bytes,
        max_pair_tokens=whole.max_length_tokens,
    )
    written = load_delta_checkpoint(partial, None, None)
    after = {name: held_out_margins(written, pairs) for name, pairs in dev.items()}
    changes = [np.abs(after[name] - before[name]) for name in dev]
    report = PackReport(
        n_bytes=(partial / WEIGHTS_FILE).stat().st_size,
        mean_change=float(np.concatenate(changes).mean()),
        before={name: judge(pairs, sigmoid(before[name])) for name, pairs in dev.items()},
        after={name: judge(pairs, sigmoid(after[name])) for name, pairs in dev.items()},
    )
    write_calibration(partial, after, dev, tell)
    shutil.copyfile(student / REPORT_FILE, partial / REPORT_FILE)
    write_report(partial, PACK_REPORT_FILE, report)
    move_into(partial, out)
    return report
