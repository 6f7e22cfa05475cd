"""A batch that memory does not suffice for, run in halves.

Memory is short for a moment (another process, another worker's batch) or for good (a budget that
is too large here). Either way the pairs are not at fault, and fewer of them at a time may fit.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.batching.generation import E, Model
from service.errors import OutOfMemory

logger = logging.getLogger(__name__)

Outcome = NDArray[np.float32] | BaseException


@dataclass(frozen=True, slots=True)
class Run:
    """What came of a batch.

    Attributes:
        outcome: (n, k) logits, NaN for pairs for which memory did not suffice even alone; or what
            the model raised.
        splits: How often a part was run again in halves.
        too_large_tokens: Padded tokens of the smallest part that did not fit; None where all did.
    """

    outcome: Outcome
    splits: int = 0
    too_large_tokens: int | None = None


def run_split(model: Model[E], pairs: Sequence[E]) -> Run:
    """Run a batch, in parts where memory wants it.

    Args:
        model: Runs the pairs.
        pairs: n >= 1, in any order.
    """
    try:
        return Run(model.logits(pairs))
    except OutOfMemory as error:
        tokens = len(pairs) * max(pair.length_tokens for pair in pairs)
        if len(pairs) == 1:
            return Run(error, too_large_tokens=tokens)
    except BaseException as error:  # whatever it is, the callers must hear of it
        return Run(error)
    half = len(pairs) // 2
    first, second = run_split(model, pairs[:half]), run_split(model, pairs[half:])
    return Run(
        _joined(first.outcome, half, second.outcome, len(pairs) - half),
        1 + first.splits + second.splits,
        min(tokens, first.too_large_tokens or tokens, second.too_large_tokens or tokens),
    )


def _joined(first: Outcome, n_first: int, second: Outcome, n_second: int) -> Outcome:
    """Both halves' logits; NaN for a half that has none, its error where neither has any."""
    if isinstance(first, BaseException):
        if isinstance(second, BaseException):
            return first
        first = _failed(first, n_first, second.shape[1])
    if isinstance(second, BaseException):
        second = _failed(second, n_second, first.shape[1])
    return np.concatenate([first, second])


def _failed(error: BaseException, n_pairs: int, n_logits: int) -> NDArray[np.float32]:
    logger.error("part of a batch failed, of %d pairs", n_pairs, exc_info=error)
    return np.full((n_pairs, n_logits), np.nan, np.float32)
