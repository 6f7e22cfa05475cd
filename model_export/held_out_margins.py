"""What a model that was just written says of the dev files, and the score calibration from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from model_export.checkpoint import CALIBRATION_FILE, Checkpoint
from model_export.errors import ExportError, RelevanceReversed
from model_export.fit_calibration import fit_score_calibration
from model_export.pairs import LabelledPair
from model_export.reference_logits import pair_encoder
from model_export.to_onnx import takes_segments
from model_export.training_rows import Collator, encode_pairs, logits_of_rows, to_rows
from service.scoring.head import margin


def held_out_margins(written: Checkpoint, pairs: Sequence[LabelledPair]) -> NDArray[np.float64]:
    """(n,) log-odds of relevance of each pair before calibration."""
    render = written.template.render
    encoded = encode_pairs(pair_encoder(written), [(pair.query, render(pair.ad)) for pair in pairs])
    rows = to_rows(
        encoded,
        [(pair.label,) for pair in pairs],
        with_segments=takes_segments(written.model, written.tokenizer),
    )
    logits = logits_of_rows(written.model, rows, Collator(written.tokenizer))
    return margin(logits, written.head)


def write_calibration(
    folder: Path,
    margins: Mapping[str, NDArray[np.float64]],
    pairs_by_file: Mapping[str, Sequence[LabelledPair]],
    tell: Callable[[str], None],
) -> None:
    """Fit a score calibration on all files together, and write it beside the weights.

    Where the pairs do not suffice for one, `tell` is told why, and no file is written.

    Args:
        folder: Of the weights.
        margins: By file, the (n,) log-odds of its pairs.
        pairs_by_file: The pairs.
        tell: Told what could not be calibrated.
    """
    labels = [pair.label for name in margins for pair in pairs_by_file[name]]
    try:
        calibration = fit_score_calibration(
            np.concatenate(list(margins.values())),
            labels,
            [pair.query for name in margins for pair in pairs_by_file[name]],
            " + ".join(margins),
        ).calibration
    except RelevanceReversed:  # of a model trained here: no label has been mistaken
        tell("warning: scores stay uncalibrated: on the dev pairs they do not grow with relevance")
        return
    except ExportError as error:  # too few pairs, say: the model is good without
        tell(f"warning: scores stay uncalibrated: {error}")
        return
    text = calibration.model_dump_json(indent=2)
    (folder / CALIBRATION_FILE).write_text(text + "\n", encoding="utf-8")
