"""What a quantized graph does to scores: by itself, and with the company that a pair is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_export.evaluate import judge
from model_export.pairs import LabelledPair
from model_export.parity import (
    IN_MICRO_BATCHES,
    TOLERANCES,
    compare,
    largest_change,
    logits_in_company,
    violations,
)
from service.scoring.bulk import LogitModel
from service.scoring.calibration import Identity, to_scores
from service.scoring.encoding import EncodedPair
from service.scoring.head import Head

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Spread:
    """How far scores move with their company.

    Attributes:
        worst: Largest change of an uncalibrated score.
        p99: 99th percentile of the pairs' changes.
    """

    worst: float
    p99: float


@dataclass(frozen=True, slots=True)
class RecipeFigures:
    """What a recipe costs in quality.

    Attributes:
        mean_score: Mean change of the uncalibrated score against torch, in micro-batches.
        worst_score: Largest such change.
        spread: Change with the company, by company.
        auc: On the labelled pairs; None without labels.
        ndcg_at_10: The same.
        refused_for: What the export's tolerances do not allow; empty where it may serve.
    """

    mean_score: float
    worst_score: float
    spread: dict[str, Spread]
    auc: float | None
    ndcg_at_10: float | None
    refused_for: tuple[str, ...]

    @property
    def worst_spread(self) -> float:
        """Largest change in any company; NaN if there is one."""
        return float(np.max([one.worst for one in self.spread.values()]))

    @property
    def p99_spread(self) -> float:
        """The 99th percentile in the company where it is largest."""
        return float(np.max([one.p99 for one in self.spread.values()]))


def recipe_figures(
    model: LogitModel,
    pairs: Sequence[EncodedPair],
    reference: Logits,
    head: Head,
    *,
    labelled: Sequence[LabelledPair] = (),
    precision: str = "int8",
    threads: int = 1,
) -> RecipeFigures:
    """Run all pairs in every company and compare.

    Args:
        model: The recipe's graph.
        pairs: n pairs.
        reference: (n, k) logits of the original model.
        head: What the logits mean.
        labelled: The same pairs with labels, or none.
        precision: Key of the export's tolerances.
        threads: Runs at once.
    """
    alone, company = logits_in_company(model, pairs, threads)
    served = company[IN_MICRO_BATCHES]
    fidelity = compare(reference, served, head, largest_change(alone, company))
    refused = violations(fidelity.figures(), TOLERANCES[precision])
    quality = judge(labelled, _scores(served, head)) if labelled else None
    return RecipeFigures(
        mean_score=fidelity.mean_score,
        worst_score=fidelity.worst_score,
        spread={name: _spread(alone, logits, head) for name, logits in company.items()},
        auc=quality.auc if quality else None,
        ndcg_at_10=quality.ndcg_at_10 if quality else None,
        refused_for=tuple(sentence.split()[0] for sentence in refused),
    )


def _spread(alone: Logits, logits: Logits, head: Head) -> Spread:
    change = np.abs(_scores(logits, head) - _scores(alone, head))
    return Spread(worst=float(change.max()), p99=float(np.percentile(change, 99)))


def _scores(logits: Logits, head: Head) -> NDArray[np.float64]:
    return to_scores(logits, head, Identity())
