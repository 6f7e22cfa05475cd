"""Does the exported graph still score like the original? Measured through the classes that serve.

Two questions. *Fidelity*: torch against each graph, pair by pair. *Batch spread*: the same pair
through the same graph, alone, in full batches and beside longer neighbours; what is not zero there
means that an auction's outcome depends on whoever else asks at that moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from model_export.metrics import rank_correlation
from model_export.report.shown_text import shown_text
from service.scoring.bulk import MICRO_BATCH_PAIRS, LogitModel, bulk_logits
from service.scoring.calibration import Identity, to_scores
from service.scoring.encoding import EncodedPair
from service.scoring.head import Head

Logits = NDArray[np.float32]

N_WORST_SHOWN = 5
AT_LEAST = "rank_agreement"  # the one figure whose tolerance is a lower limit
SMALLEST_LIMIT = 1e-12  # so that how far a tolerance of zero is missed is a number too
LARGE_BATCH_PAIRS = 32

IN_MICRO_BATCHES = f"{MICRO_BATCH_PAIRS} of like length"  # as the service does on a CPU


@dataclass(frozen=True, slots=True)
class Tolerances:
    """What a graph may differ by before the export refuses it.

    Scores are uncalibrated probabilities here: a flat calibration must not hide a difference.

    Attributes:
        worst_logit: Largest absolute difference of any logit.
        mean_score: Mean absolute difference of the score.
        worst_score: Largest absolute difference of the score.
        rank_agreement: Least Spearman correlation of the scores.
        batch_spread: Largest change of a logit in other company.
        auc_loss: What the labelled pairs' AUC may lose.
        ndcg_loss: What their NDCG@10 may lose.
    """

    worst_logit: float
    mean_score: float
    worst_score: float
    rank_agreement: float
    batch_spread: float = 0.0
    auc_loss: float = 0.005
    ndcg_loss: float = 0.02


# fp32: rounding only. fp16: eleven bits, so about a thousandth of the largest numbers on the way;
# a GPU's kernels differ with the shape of the batch, so its spread cannot be zero. int8: the
# row-wise recipe was measured at a mean score change of .0086 and gets twice that; the plain
# dynamic recipe fails on spread alone (up to .5). AUC and NDCG: on a thousand labelled pairs their
# own standard errors are about .01, so a smaller loss cannot be told from luck. NDCG moves in
# larger steps, since it looks at ten places of each query.
TOLERANCES = {
    "fp32": Tolerances(worst_logit=1e-3, mean_score=1e-5, worst_score=1e-4, rank_agreement=0.9999),
    "fp16": Tolerances(
        worst_logit=0.1, mean_score=0.002, worst_score=0.02, rank_agreement=0.999, batch_spread=0.02
    ),
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


def torch_logits(
    model: Any,  # noqa: ANN401  # untyped library
    pairs: Sequence[EncodedPair],
    *,
    with_segments: bool,
    on_progress: Callable[[int], None] = lambda _: None,
) -> Logits:
    """The reference: each pair alone through the original torch model in fp32, so no padding.

    Args:
        model: transformers sequence classifier in eval mode.
        pairs: n pairs, as the service encodes them.
        with_segments: Whether it is fed segment ids; see `to_onnx.takes_segments`.
        on_progress: Told of each pair.

    Returns:
        (n, k) float32.
    """
    import torch

    rows = []
    with torch.inference_mode():
        for pair in pairs:
            feed = {"input_ids": torch.from_numpy(pair.ids)[None]}
            feed["attention_mask"] = torch.ones_like(feed["input_ids"])
            if with_segments:
                feed["token_type_ids"] = torch.from_numpy(pair.type_ids)[None]
            rows.append(model(**feed).logits[0].float().numpy())
            on_progress(1)
    return np.stack(rows).astype(np.float32)


def logits_in_company(
    model: LogitModel, pairs: Sequence[EncodedPair], threads: int = 1
) -> tuple[Logits, dict[str, Logits]]:
    """Each pair's logits alone, and in three kinds of company.

    Args:
        model: Runs a batch; thread-safe.
        pairs: n >= 1 pairs.
        threads: Batches that run at once.

    Returns:
        (n, k) alone, and by the name of the company (n, k), all in the order of `pairs`.
    """
    longest = max(pairs, key=lambda pair: pair.length_tokens)

    def beside_the_longest(batch: Sequence[EncodedPair]) -> Logits:
        return model.logits([longest, *batch])[1:]  # padded to full width

    with ThreadPoolExecutor(threads) as executor:

        def in_order(run: Callable[[Sequence[EncodedPair]], Logits], size: int) -> Logits:
            batches = [pairs[start : start + size] for start in range(0, len(pairs), size)]
            return np.concatenate(list(executor.map(run, batches)))

        return in_order(model.logits, 1), {
            IN_MICRO_BATCHES: bulk_logits(model, pairs, threads=threads),
            f"{LARGE_BATCH_PAIRS} as they come": in_order(model.logits, LARGE_BATCH_PAIRS),
            "beside the longest": in_order(beside_the_longest, MICRO_BATCH_PAIRS),
        }


def largest_change(alone: Logits, companies: Mapping[str, Logits]) -> float:
    """The batch spread: how far any logit moves in any company; NaN if one is not a number."""
    # np.max, since the built-in one passes over NaN.
    return float(np.max([np.abs(logits - alone).max() for logits in companies.values()]))


def batch_spread(model: LogitModel, pairs: Sequence[EncodedPair]) -> float:
    """Largest change of any logit when the same pair is scored in other company."""
    return largest_change(*logits_in_company(model, pairs))


def compare(reference: Logits, actual: Logits, head: Head, spread: float) -> Fidelity:
    """How far `actual` is from `reference`; both (n, k), same order."""
    reference_scores = to_scores(reference, head, Identity())
    scores = to_scores(actual, head, Identity())
    change = np.abs(scores - reference_scores)
    return Fidelity(
        worst_logit=float(np.abs(actual - reference).max()),
        mean_score=float(change.mean()),
        worst_score=float(change.max()),
        rank_agreement=rank_correlation(reference_scores, scores),
        batch_spread=spread,
        n_pairs=len(scores),
    )


def is_met(name: str, value: float, limit: float) -> bool:
    """Whether a figure is within its tolerance; NaN never is."""
    return value >= limit if name == AT_LEAST else value <= limit


def tolerance_option(name: str) -> str:
    """The option of `export` that sets a tolerance."""
    side = "min" if name == AT_LEAST else "max"
    return f"--{side}-{name.replace('_', '-')}"


def missed(figures: Mapping[str, float], tolerances: Tolerances) -> list[str]:
    """Names of the tolerances that are not met; all of them, the farthest from it first.

    Args:
        figures: By the names in `Tolerances`; those that are absent were not measured. NaN never
            passes.
        tolerances: What they may be.
    """
    broken = []
    for name, limit in asdict(tolerances).items():
        if name not in figures:
            continue
        got = figures[name]
        if name == AT_LEAST:
            excess = (1 - got) / max(1 - limit, SMALLEST_LIMIT)
        else:
            excess = got / max(limit, SMALLEST_LIMIT)
        if not is_met(name, got, limit):
            excess = math.inf if math.isnan(excess) else excess
            broken.append((-excess, name))
    return [name for _, name in sorted(broken)]


def violations(figures: Mapping[str, float], tolerances: Tolerances) -> list[str]:
    """A sentence for each of the `missed`."""
    limits = asdict(tolerances)
    return [
        f"{name} is {figures[name]:.6g}, tolerance {limits[name]:g}"
        for name in missed(figures, tolerances)
    ]


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
    before = to_scores(reference, head, Identity())
    after = to_scores(actual, head, Identity())
    change = np.nan_to_num(np.abs(after - before), nan=np.inf)
    order = np.argsort(-change, kind="stable")[:N_WORST_SHOWN]
    lines = ["  worst pairs:  before  after   query | ad"]
    for index in order:
        query, ad = texts[index]
        lines.append(
            f"                {before[index]:.4f}  {after[index]:.4f}  "
            f"{shown_text(query, 40)} | {shown_text(ad, 60)}"
        )
    return "\n".join(lines)
