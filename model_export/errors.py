"""Everything that can stop an offline command. Each ends it with one message and exit code 1.

ExportError
|- BadPairsFile          a file of labelled pairs: path, line and reason
|- BaseWeightsMissing    the base model of an adapter is not to be found
|- AdapterMismatch       an adapter was made for other base weights
|- DamagedDelta          a student's weight delta is not the file that it should be
|- UnsupportedCheckpoint the checkpoint cannot be served, and why
|- RelevanceReversed     scores do not rise with relevance, so no score map fits
|- QuantizationFailed    the graph does not have the shape that the recipe needs
`- ParityFailed          the exported graph does not score like the original
"""

from __future__ import annotations

from collections.abc import Sequence


class ExportError(Exception):
    """Base of all errors that a user of the offline commands can meet."""


class BadPairsFile(ExportError):
    """A file of pairs cannot be used; the message names the path, the line and the reason."""


class BaseWeightsMissing(ExportError):
    """The base weights that an adapter names were found nowhere."""


class AdapterMismatch(ExportError):
    """An adapter does not fit the base weights: another hash, or other shapes."""


class DamagedDelta(ExportError):
    """A weight delta cannot be read back: another hash, missing facts, or codes that do not fit."""


class UnsupportedCheckpoint(ExportError):
    """The checkpoint is not one that the service can score with; the message says why."""


class RelevanceReversed(ExportError):
    """The logits of labelled pairs do not grow with their relevance.

    Args:
        slope: Of relevance over the logit, 0 or below.
        auc: Of the logits.
    """

    def __init__(self, slope: float, auc: float) -> None:
        super().__init__(
            f"the model does not order these pairs by relevance: AUC {auc:.2f}, where chance is "
            f"0.5 (slope of relevance over the logit {slope:.3g}), and no score calibration mends "
            "that. Train it on more or other pairs; if the AUC is far below 0.5, check which label "
            "means relevant"
        )


class QuantizationFailed(ExportError):
    """The graph does not have the form that the quantization recipe rewrites."""


class ParityFailed(ExportError):
    """A graph scores unlike its reference; the message says how, and what can be done.

    Args:
        stage: What was compared.
        broken: As the attribute.
        worst_pairs: A table, worst pairs first.
        next_steps: Sentences on what to do.

    Attributes:
        broken: A sentence for each tolerance that is not met.
        seen: The message without what can be done.
    """

    def __init__(
        self, stage: str, broken: Sequence[str], worst_pairs: str, next_steps: Sequence[str]
    ) -> None:
        self.broken = tuple(broken)
        listed = "\n".join(f"  {sentence}" for sentence in broken)
        self.seen = f"parity failed, {stage}:\n{listed}\n{worst_pairs}"
        advised = "\n".join(f"  - {sentence}" for sentence in next_steps)
        super().__init__(f"{self.seen}\n  what to do:\n{advised}")
