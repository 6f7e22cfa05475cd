from __future__ import annotations

import pytest

from model_export.gate_advice import next_steps
from model_export.options import Precision


def test_a_batch_spread_is_never_hidden_by_a_tolerance() -> None:
    said = " ".join(next_steps(["batch_spread", "worst_logit"], "int8"))
    assert "please report it" in said
    assert "--max-" not in said


def test_odd_pairs_may_be_let_through_by_the_options_that_refused_them() -> None:
    first, *_ = next_steps(["worst_score"], "int8")
    assert "raise --max-worst-score" in first
    first, *_ = next_steps(["worst_score", "worst_logit"], "int8")
    assert "raise --max-worst-logit and --max-worst-score" in first


def test_what_labels_alone_refuse_wants_more_of_them() -> None:
    first, *_ = next_steps(["ndcg_loss"], "fp16")
    assert "--calibrate on more pairs" in first


@pytest.mark.parametrize(
    ("precision", "option"),
    [("int8", "--fallback fp32"), ("fp16", "--target cuda"), ("fp32", "please report")],
)
def test_scores_that_moved_as_a_whole_want_another_precision(
    precision: Precision, option: str
) -> None:
    first, *_ = next_steps(["mean_score", "worst_score", "auc_loss"], precision)
    assert option in first
