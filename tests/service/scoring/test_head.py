from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError

from service.scoring.head import Head, margin

logit = st.floats(-30, 30, width=32)


def margins(rows: Any, head: Head) -> list[float]:  # noqa: ANN401  # whatever makes an array
    return [float(x) for x in margin(np.array(rows, dtype=np.float32), head)]


def log_odds(p: float) -> float:
    return float(np.log(p / (1 - p)))


def test_one_logit_is_its_own_margin() -> None:
    assert margins([[1.5], [-2.0]], Head(kind="binary", n_logits=1)) == [1.5, -2.0]


def test_the_margin_of_two_logits_is_their_difference() -> None:
    rows = [[1.0, 3.0], [9000.0, -9000.0]]
    second = Head(kind="binary", n_logits=2, relevant_index=1)
    first = Head(kind="binary", n_logits=2, relevant_index=0)
    assert margins(rows, second) == [2.0, -18000.0]
    assert margins(rows, first) == [-2.0, 18000.0]


@given(arrays(np.float32, (3, 4), elements=logit), st.integers(0, 3))
def test_a_class_among_many_has_the_log_odds_of_its_softmax(rows: Any, relevant: int) -> None:  # noqa: ANN401
    head = Head(kind="multiclass", n_logits=4, relevant_index=relevant)
    weights = np.exp(rows.astype(np.longdouble))
    expected = np.log(weights[:, relevant]) - np.log(np.delete(weights, relevant, 1).sum(axis=1))
    assert margins(rows, head) == pytest.approx(expected.astype(float), abs=1e-9)


def test_ordered_grades_give_the_log_odds_of_the_expected_grade() -> None:
    rows = np.log([[0.1, 0.2, 0.3, 0.4]])
    even = Head(kind="ordinal", n_logits=4)
    assert margins(rows, even) == pytest.approx([log_odds((0.2 + 0.3 * 2 + 0.4 * 3) / 3)])
    # Exact, substitute, complement, irrelevant in the order of their labels, best first.
    valued = Head(kind="ordinal", n_logits=4, grades=(1.0, 0.1, 0.01, 0.0))
    assert margins(rows, valued) == pytest.approx([log_odds(0.1 + 0.02 + 0.003)], rel=1e-5)


@given(arrays(np.float32, (3, 2), elements=logit))
def test_two_grades_are_two_classes(rows: Any) -> None:  # noqa: ANN401
    two_classes = Head(kind="binary", n_logits=2, relevant_index=1)
    assert margins(rows, Head(kind="ordinal", n_logits=2)) == margins(rows, two_classes)


@pytest.mark.parametrize(
    "head",
    [
        Head(kind="ordinal", n_logits=3),
        Head(kind="ordinal", n_logits=3, grades=(0.0, 0.9, 1.0)),
        Head(kind="multiclass", n_logits=3, relevant_index=2),
    ],
)
def test_certain_pairs_keep_their_order(head: Head) -> None:
    sizes = [-1e4, -5e3, -900.0, -50.0, 50.0, 900.0, 5e3, 1e4]
    found = margins([[-size, 0.0, size] for size in sizes], head)
    assert np.isfinite(found).all()
    assert (np.diff(found) > 10).all(), "no clipping, so no ties"


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    "head",
    [
        Head(kind="multiclass", n_logits=3),
        Head(kind="ordinal", n_logits=3),
        Head(kind="ordinal", n_logits=3, grades=(0.0, 1.0, 0.5)),
    ],
)
def test_a_logit_that_is_not_finite_spoils_its_own_pair_alone(head: Head, bad: float) -> None:
    spoilt, fine = margins([[0.0, bad, 1.0], [0.0, 2.0, 1.0]], head)
    assert np.isnan(spoilt)
    assert np.isfinite(fine)


def test_an_infinite_single_logit_is_no_margin_and_the_logits_stay_as_they_were() -> None:
    logits = np.array([[np.inf], [1.0]], dtype=np.float32)
    assert np.isnan(margin(logits, Head(kind="binary", n_logits=1))[0])
    assert np.isinf(logits[0, 0])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"kind": "binary", "n_logits": 3}, "one or two logits, not 3"),
        ({"kind": "binary", "n_logits": 1, "relevant_index": 1}, "relevant_index is 1"),
        ({"kind": "multiclass", "n_logits": 2}, "three or more logits, not 2"),
        ({"kind": "multiclass", "n_logits": 3, "relevant_index": 3}, "the last of 3 logits is 2"),
        ({"kind": "multiclass", "n_logits": 3, "grades": (0, 0.5, 1)}, "multiclass head has no"),
        ({"kind": "ordinal", "n_logits": 1}, "two or more grades"),
        ({"kind": "ordinal", "n_logits": 3, "relevant_index": 2}, "has no relevant_index"),
        ({"kind": "ordinal", "n_logits": 3, "grades": (0, 1)}, "2 grades for 3 logits"),
        ({"kind": "ordinal", "n_logits": 3, "grades": (0, 1, 3)}, "go from 0 to 3"),
        ({"kind": "ordinal", "n_logits": 2, "grades": (0.5, 1)}, "go from 0.5 to 1"),
        ({"kind": "ordinal", "n_logits": 2, "grades": (0, float("nan"))}, "finite"),
        ({"kind": "regression", "n_logits": 1}, "kind"),
    ],
)
def test_a_head_that_makes_no_sense_says_why(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says):
        Head(**fields)
