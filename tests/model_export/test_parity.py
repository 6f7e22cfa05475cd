from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.parity import (
    LARGE_BATCH_PAIRS,
    N_WORST_SHOWN,
    TOLERANCES,
    Fidelity,
    Tolerances,
    batch_spread,
    compare,
    violations,
    worst_pairs_table,
)
from service.scoring.bulk import MICRO_BATCH_PAIRS
from service.scoring.encoding import EncodedPair
from service.scoring.head import Head

HEAD = Head(kind="binary", n_logits=1)
GOOD = Fidelity(0.0, 0.0, 0.0, 1.0, 0.0, 10)


def column(*values: float) -> NDArray[np.float32]:
    return np.array(values, dtype=np.float32)[:, None]


def pairs() -> list[EncodedPair]:
    return [
        EncodedPair(np.arange(n), np.zeros(n, dtype=np.int64), truncated=False)
        for n in range(3, 60)
    ]


class Moody:
    """A pair's logit is its length, plus a share of the longest length in its batch."""

    def __init__(self, share: float) -> None:
        self.share = share

    def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
        longest = max(pair.length_tokens for pair in batch)
        return column(*(pair.length_tokens + self.share * longest for pair in batch))


def with_figure(name: str, value: float) -> dict[str, float]:
    return {**GOOD.figures(), name: value}


def test_a_graph_that_minds_its_batch_mates_is_found_out() -> None:
    assert batch_spread(Moody(share=0.0), pairs()) == 0
    assert batch_spread(Moody(share=0.01), pairs()) == pytest.approx(0.56, abs=0.01)


def test_equal_logits_have_perfect_figures() -> None:
    logits = column(-2, 0, 3)
    assert compare(logits, logits, HEAD, 0.0) == replace(GOOD, n_pairs=3, rank_agreement=1.0)


def test_differences_are_measured_in_logits_and_in_scores() -> None:
    figures = compare(column(0, 0), column(1, 0), HEAD, 0.0)
    assert figures.worst_logit == 1
    assert figures.worst_score == pytest.approx(1 / (1 + np.exp(-1)) - 0.5)
    assert figures.mean_score == pytest.approx(figures.worst_score / 2)


@pytest.mark.parametrize("precision", sorted(TOLERANCES))
@pytest.mark.parametrize("name", [field.name for field in fields(Tolerances)])
def test_each_tolerance_is_checked_and_named(precision: str, name: str) -> None:
    tolerances = TOLERANCES[precision]
    assert violations(GOOD.figures(), tolerances) == []
    past = getattr(tolerances, name) + (-0.02 if name == "rank_agreement" else 0.02)
    (message,) = violations(with_figure(name, past), tolerances)
    assert message.startswith(f"{name} is ")


@pytest.mark.parametrize("name", [field.name for field in fields(Tolerances)])
def test_a_figure_that_is_not_a_number_never_passes(name: str) -> None:
    assert violations(with_figure(name, float("nan")), TOLERANCES["int8"])


def test_all_that_is_wrong_is_said_at_once_the_farthest_first() -> None:
    bad = {"worst_logit": 9.0, "mean_score": 0.8, "batch_spread": 0.5, "auc_loss": 0.001}
    said = [sentence.split()[0] for sentence in violations(bad, TOLERANCES["int8"])]
    assert said == ["batch_spread", "mean_score", "worst_logit"]


def test_a_loss_that_was_not_measured_is_not_judged() -> None:
    assert violations({"worst_logit": 0.0}, TOLERANCES["int8"]) == []


def test_a_gain_in_auc_is_no_loss() -> None:
    assert violations({"auc_loss": -0.2}, TOLERANCES["int8"]) == []


def test_the_worst_pair_comes_first() -> None:
    texts = [("q", "fine"), ("q", "terrible"), ("q", "bad")]
    table = worst_pairs_table(texts, column(0, 0, 0), column(0, 4, 1), HEAD)
    assert table.index("terrible") < table.index("bad") < table.index("fine")
    assert "0.5000  0.9820" in table


class Biased:
    """Zero for every pair, unless `bias` says otherwise for a pair in its batch."""

    def __init__(self, bias: Callable[[EncodedPair, Sequence[EncodedPair]], float]) -> None:
        self.bias = bias

    def logits(self, batch: Sequence[EncodedPair]) -> NDArray[np.float32]:
        return column(*(self.bias(pair, batch) for pair in batch))


def in_a_micro_batch(_: EncodedPair, batch: Sequence[EncodedPair]) -> float:
    return float(len(batch) == MICRO_BATCH_PAIRS)


def in_a_large_batch(_: EncodedPair, batch: Sequence[EncodedPair]) -> float:
    return float(len(batch) == LARGE_BATCH_PAIRS)


def beside_the_longest(pair: EncodedPair, batch: Sequence[EncodedPair]) -> float:
    return float(pair.length_tokens < 10 and batch[0].length_tokens == 59)


@pytest.mark.parametrize("bias", [in_a_micro_batch, in_a_large_batch, beside_the_longest])
def test_every_kind_of_company_is_tried(
    bias: Callable[[EncodedPair, Sequence[EncodedPair]], float],
) -> None:
    assert batch_spread(Biased(bias), pairs()) == 1


@pytest.mark.parametrize("bias", [in_a_micro_batch, in_a_large_batch, beside_the_longest])
def test_a_logit_that_is_no_number_in_some_company_never_passes(
    bias: Callable[[EncodedPair, Sequence[EncodedPair]], float],
) -> None:
    broken = Biased(lambda pair, batch: float("nan") if bias(pair, batch) else 0.0)
    assert violations({"batch_spread": batch_spread(broken, pairs())}, TOLERANCES["fp32"])


def test_a_logit_that_is_no_number_spoils_the_comparison() -> None:
    nan = float("nan")
    fidelity = compare(column(-2, 0, 3), column(-2, nan, 3), HEAD, spread=0.0)
    broken = {line.split()[0] for line in violations(fidelity.figures(), TOLERANCES["int8"])}
    assert broken >= {"worst_logit", "mean_score", "worst_score"}


def test_a_pair_without_a_number_is_worse_than_any_other() -> None:
    texts = [(f"q{n}", "fine") for n in range(2 * N_WORST_SHOWN)]
    reference = column(*range(2 * N_WORST_SHOWN))
    actual = reference + np.float32(0.1)
    actual[7] = np.nan
    table = worst_pairs_table(texts, reference, actual, HEAD).splitlines()
    assert len(table) == 1 + N_WORST_SHOWN
    assert "q7 |" in table[1]


def test_figures_exactly_at_their_tolerances_pass() -> None:
    tolerances = TOLERANCES["int8"]
    limits = {field.name: getattr(tolerances, field.name) for field in fields(Tolerances)}
    assert violations(limits, tolerances) == []
