"""Does the exported graph still score like the original? Measured through the classes that serve.

Two questions. *Fidelity*: torch against each graph, pair by pair. *Batch spread*: the same pair
through the same graph, alone, in full batches and beside longer neighbours; what is not zero there
means that an auction's outcome depends on whoever else asks at that moment.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_export.errors import ParityFailed
from model_export.metrics import rank_correlation
from service.scoring.bulk import MICRO_BATCH_PAIRS, LogitModel, bulk_logits
from service.scoring.calibration import Head, ScoreCalibration, to_scores
from service.scoring.encoding import EncodedPair

Logits = NDArray[np.float32]

N_WORST_SHOWN = 5
LARGE_BATCH_PAIRS = 32


@dataclass(frozen=True, slots=True)
class Tolerances:
    """What a graph may differ by before the export refuses it.

    Scores are uncalibrated probabilities here: a flat calibration must not hide a difference.
    """

    worst_logit: float
    mean_score: float
    worst_score: float
    rank_agreement: float
    batch_spread: float = 0.0


# fp32: rounding only. int8: the row-wise recipe was measured at a mean score change of .0078 and
# gets twice that; the plain dynamic recipe fails on spread alone (up to .5).
TOLERANCES = {
    "fp32": Tolerances(worst_logit=1e-3, mean_score=1e-5, worst_score=1e-4, rank_agreement=0.9999),
    "int8": Tolerances(worst_logit=1.0, mean_score=0.016, worst_score=0.15, rank_agreement=0.99),
}


@dataclass(frozen=True, slots=True)
class Fidelity:
    """How far a graph is from its reference over n pairs.

    Attributes:
        worst_logit: Largest absolute difference of any logit.
        mean_score: Mean absolute difference of the uncalibrated score.
        worst_score: Largest absolute difference of the uncalibrated score.
        rank_agreement: Spearman's correlation of the scores.
        batch_spread: Largest change of a logit with its batch mates or its padding.
        n_pairs: Pairs compared.
    """

    worst_logit: float
    mean_score: float
    worst_score: float
    rank_agreement: float
    batch_spread: float
    n_pairs: int

    def figures(self) -> dict[str, Any]:
        """For the manifest and the report."""
        return asdict(self)


def torch_logits(model: Any, pairs: Sequence[EncodedPair]) -> Logits:  # noqa: ANN401
    """The reference: each pair alone through the original torch model in fp32, so no padding.

    Args:
        model: transformers sequence classifier in eval mode.
        pairs: n pairs, as the service encodes them.

    Returns:
        (n, k) float32.
    """
    import inspect

    import torch

    takes_types = "token_type_ids" in inspect.signature(model.forward).parameters
    rows = []
    with torch.inference_mode():
        for pair in pairs:
            feed = {"input_ids": torch.from_numpy(pair.ids)[None]}
            feed["attention_mask"] = torch.ones_like(feed["input_ids"])
            if takes_types:
                feed["token_type_ids"] = torch.from_numpy(pair.type_ids)[None]
            rows.append(model(**feed).logits[0].float().numpy())
    return np.stack(rows).astype(np.float32)


def batch_spread(model: LogitModel, pairs: Sequence[EncodedPair]) -> float:
    """Largest change of any logit when the same pair is scored in other company.

    Compared with each pair alone: micro-batches of neighbours in length, large batches in the
    given order, and every pair beside the longest one, so that it is padded to full width.
    """
    alone = np.concatenate([model.logits([pair]) for pair in pairs])
    longest = max(pairs, key=lambda pair: pair.length_tokens)
    companies = [
        bulk_logits(model, pairs),
        np.concatenate(
            [
                model.logits(pairs[start : start + LARGE_BATCH_PAIRS])
                for start in range(0, len(pairs), LARGE_BATCH_PAIRS)
            ]
        ),
        np.concatenate(
            [
                model.logits([longest, *pairs[start : start + MICRO_BATCH_PAIRS]])[1:]
                for start in range(0, len(pairs), MICRO_BATCH_PAIRS)
            ]
        ),
    ]
    # np.max, since the built-in one passes over NaN.
    return float(np.max([np.abs(logits - alone).max() for logits in companies]))


def compare(reference: Logits, actual: Logits, head: Head, spread: float) -> Fidelity:
    """How far `actual` is from `reference`; both (n, k), same order."""
    reference_scores = to_scores(reference, head, ScoreCalibration())
    scores = to_scores(actual, head, ScoreCalibration())
    change = np.abs(scores - reference_scores)
    return Fidelity(
        worst_logit=float(np.abs(actual - reference).max()),
        mean_score=float(change.mean()),
        worst_score=float(change.max()),
        rank_agreement=rank_correlation(reference_scores, scores),
        batch_spread=spread,
        n_pairs=len(scores),
    )


def violations(fidelity: Fidelity, tolerances: Tolerances) -> list[str]:
    """One sentence per tolerance that is not met; all of them, not the first. NaN never passes."""
    checks: list[tuple[str, float, float, Callable[[float, float], bool]]] = [
        (name, getattr(fidelity, name), getattr(tolerances, name), lambda got, limit: got <= limit)
        for name in ("batch_spread", "worst_logit", "mean_score", "worst_score")
    ]
    checks.append(
        (
            "rank_agreement",
            fidelity.rank_agreement,
            tolerances.rank_agreement,
            lambda got, limit: got >= limit,
        )
    )
    return [
        f"{name} is {got:.6g}, tolerance {limit:g}"
        for name, got, limit, passes in checks
        if not passes(got, limit)
    ]


def require_parity(
    stage: str,
    fidelity: Fidelity,
    tolerances: Tolerances,
    worst_pairs: Callable[[], str],
) -> None:
    """Refuse a graph that is past its tolerances.

    Args:
        stage: What was compared, for the message.
        fidelity: The figures.
        tolerances: What they may be.
        worst_pairs: Gives the table of the worst pairs; called only on failure.

    Raises:
        ParityFailed: Names every tolerance that is not met, and the worst pairs.
    """
    broken = violations(fidelity, tolerances)
    if broken:
        listed = "\n".join(f"  {line}" for line in broken)
        raise ParityFailed(f"parity failed, {stage}:\n{listed}\n{worst_pairs()}")


def worst_pairs_table(
    texts: Sequence[tuple[str, str]], reference: Logits, actual: Logits, head: Head
) -> str:
    """The pairs whose scores moved most, worst first, with both scores.

    Args:
        texts: (query, ad text) of each pair.
        reference: (n, k) logits.
        actual: (n, k) logits.
        head: What they mean.
    """
    before = to_scores(reference, head, ScoreCalibration())
    after = to_scores(actual, head, ScoreCalibration())
    change = np.nan_to_num(np.abs(after - before), nan=np.inf)
    order = np.argsort(-change, kind="stable")[:N_WORST_SHOWN]
    lines = ["  worst pairs:  before  after   query | ad"]
    for index in order:
        query, ad = (" ".join(text.split()) for text in texts[index])
        lines.append(
            f"                {before[index]:.4f}  {after[index]:.4f}  {query[:40]} | {ad[:60]}"
        )
    return "\n".join(lines)
