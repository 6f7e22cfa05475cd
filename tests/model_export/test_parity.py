from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from model_export.errors import ParityFailed
from model_export.parity import (
    TOLERANCES,
    Fidelity,
    Tolerances,
    batch_spread,
    compare,
    require_parity,
    violations,
    worst_pairs_table,
)
from service.scoring.calibration import Head
from service.scoring.encoding import EncodedPair

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


def with_figure(name: str, value: float) -> Fidelity:
    return Fidelity(**{**GOOD.figures(), name: value})


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
    assert violations(GOOD, tolerances) == []
    past = getattr(tolerances, name) + (-0.02 if name == "rank_agreement" else 0.02)
    (message,) = violations(with_figure(name, past), tolerances)
    assert message.startswith(f"{name} is ")


@pytest.mark.parametrize("name", [field.name for field in fields(Tolerances)])
def test_a_figure_that_is_not_a_number_never_passes(name: str) -> None:
    assert violations(with_figure(name, float("nan")), TOLERANCES["int8"])


def test_all_that_is_wrong_is_said_at_once_with_the_worst_pairs() -> None:
    bad = replace(GOOD, worst_logit=9.0, batch_spread=0.5)
    with pytest.raises(ParityFailed) as caught:
        require_parity("torch against int8", bad, TOLERANCES["int8"], lambda: "the table")
    for part in ("torch against int8", "worst_logit is 9", "batch_spread is 0.5", "the table"):
        assert part in str(caught.value)


def test_the_worst_pair_comes_first() -> None:
    texts = [("q", "fine"), ("q", "terrible"), ("q", "bad")]
    table = worst_pairs_table(texts, column(0, 0, 0), column(0, 4, 1), HEAD)
    assert table.index("terrible") < table.index("bad") < table.index("fine")
    assert "0.5000  0.9820" in table
