"""What the user of an export can do where the gate has refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from model_export.parity import tolerance_option

if TYPE_CHECKING:
    from model_export.options import Precision

ODD_PAIRS = ("worst_logit", "worst_score")
ALL_PAIRS = ("mean_score", "rank_agreement")
LABELS = ("auc_loss", "ndcg_loss")


def next_steps(missed: Sequence[str], precision: Precision) -> list[str]:
    """Sentences on what to do, the most promising first.

    Args:
        missed: Names of the tolerances that are not met.
        precision: Of the graph that was refused.
    """
    steps = []
    if "batch_spread" in missed:
        steps.append(
            "scores depend on the company: an operation of this model mixes rows. No tolerance "
            "should hide that; please report it"
        )
    elif not set(missed) & {*ALL_PAIRS, *LABELS}:
        options = " and ".join(tolerance_option(name) for name in ODD_PAIRS if name in missed)
        steps.append(
            f"few pairs have moved: if those above are none that you will score, raise {options}"
        )
    elif not set(missed) & {*ALL_PAIRS, *ODD_PAIRS}:
        steps.append("the labels alone say so: few queries move much, so --calibrate on more pairs")
    return steps + _BY_PRECISION[precision]


_BY_PRECISION: dict[Precision, list[str]] = {
    "fp32": [
        "fp32 is the conversion itself, which no other precision can mend: please report the "
        "model's family, the figures and the pairs",
    ],
    "fp16": ["the original's scores are in --precision fp32 --target cuda"],
    "int8": [
        "the original's scores are in --precision fp32, which is slower; --fallback fp32 takes it "
        "by itself where int8 is refused, and the manifest says so",
        "weights of 8 bits instead of 7 are nearer to the original: --target vnni or arm64, where "
        "all machines that serve are such",
    ],
}
