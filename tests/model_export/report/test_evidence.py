from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.model_export.report.made_evidence import made_evidence


@pytest.mark.parametrize(
    "name", ["reference_scores", "fp32_scores", "served_scores", "calibrated_scores", "labels"]
)
def test_scores_that_are_not_numbers_are_refused(name: str) -> None:
    values = getattr(made_evidence(), name).copy()
    values[3] = np.nan
    with pytest.raises(ValueError, match=f"{name} holds a value that is not a number"):
        made_evidence(**{name: values})


@pytest.mark.parametrize(
    "changes",
    [
        {"truncated": np.zeros(59, dtype=bool)},
        {"labels": np.zeros(41)},
        {"labels": None},
        {"held_out_scores": np.zeros(60)},
        {"spread": np.zeros(0)},
        {"stages": []},
        {"texts": []},
        {"texts": [("a query", "an ad")]},
    ],
)
def test_what_does_not_fit_together_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"shape|labels go|at least one|without a parity stage"):
        made_evidence(**changes)


def test_labels_without_labelled_pairs_are_refused() -> None:
    with pytest.raises(ValueError, match="labels go with them"):
        made_evidence(n_labelled=0, labels=np.zeros(0))


def test_the_users_pairs_are_shown_where_there_are_some() -> None:
    assert made_evidence(20, 40).shown_pairs == slice(20, None)
    assert made_evidence(20, 0).shown_pairs == slice(0, 20)
