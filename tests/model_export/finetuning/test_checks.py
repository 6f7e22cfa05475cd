from __future__ import annotations

import numpy as np
import pytest

from model_export.errors import BadPairsFile
from model_export.evaluate import Quality
from model_export.finetuning.checks import mean_figure, refuse_unusable, warnings_of
from model_export.judgements import Grade
from model_export.pairs import LabelledPair
from model_export.recipe import recipe_for
from service.domain import Ad
from service.scoring.encoding import EncodedPair


def pair(query: str, label: float) -> LabelledPair:
    return LabelledPair(query, Ad("1", text="shoe"), label)


MIXED = [pair("a", 1.0), pair("a", 0.0), pair("b", 1.0)]


def encoded(n_truncated: int) -> list[EncodedPair]:
    ids = np.zeros(3, dtype=np.int64)
    return [EncodedPair(ids, ids, truncated=number < n_truncated) for number in range(10)]


def test_usable_pairs_pass() -> None:
    for loss in ("bce", "lambda"):
        refuse_unusable({"train": MIXED}, {"dev": MIXED}, recipe_for("full", loss=loss))


def test_one_label_alone_teaches_nothing() -> None:
    with pytest.raises(BadPairsFile, match=r"a\.csv, b\.csv: all 2 pairs have the relevance 0\.5"):
        refuse_unusable(
            {name: [pair("a", 0.5)] for name in ("a.csv", "b.csv")},
            {"dev": MIXED},
            recipe_for("full"),
        )


def test_a_ranking_needs_a_query_with_two_kinds_of_ads() -> None:
    pairs = [pair("a", 1.0), pair("b", 0.0)]
    recipe = recipe_for("full", loss="ranknet")
    with pytest.raises(BadPairsFile, match="no query has pairs of different relevance"):
        refuse_unusable({"train": pairs}, {"dev": MIXED}, recipe)
    refuse_unusable({"train": pairs}, {"dev": MIXED}, recipe_for("full"))


def test_head_grades_is_refused_files_of_different_scales_and_all_else_takes_them() -> None:
    train = {
        name: [LabelledPair("a", Ad("1", text="x"), value / best, Grade(value, best))]
        for name, value, best in (("a.csv", 2, 2), ("b.csv", 2, 4))
    }
    with pytest.raises(BadPairsFile, match=r"several: a\.csv of 0-2, b\.csv of 0-4; bring them to"):
        refuse_unusable(train, {"dev": MIXED}, recipe_for("full", "grades"))
    for loss in ("bce", "listnet"):
        refuse_unusable(train, {"dev": MIXED}, recipe_for("full", loss=loss))


def test_dev_pairs_that_can_judge_no_epoch_are_refused() -> None:
    alike = {"d1.csv": [pair("a", 1.0)] * 2, "d2.csv": [pair("b", 0.9)]}
    with pytest.raises(BadPairsFile, match=r"d1\.csv, d2\.csv: .* relevant and irrelevant"):
        refuse_unusable({"train": MIXED}, alike, recipe_for("full"))
    with pytest.raises(BadPairsFile, match="a query whose pairs have different labels"):
        refuse_unusable(
            {"train": MIXED},
            {"d": [pair("a", 1.0), pair("b", 0.0)]},
            recipe_for("full", loss="lambda"),
        )


def test_files_that_allow_no_figure_are_left_out_of_the_mean() -> None:
    quality = {name: Quality(auc, None, 1, 0, 0) for name, auc in zip("abc", (0.5, None, 0.7), strict=True)}  # fmt: skip  # noqa: E501
    assert mean_figure(quality, "auc") == pytest.approx(0.6)


def test_a_query_that_differs_in_case_and_white_space_is_on_both_sides() -> None:
    (shared,) = warnings_of(MIXED, {"dev": [pair(" A ", 1.0)]}, encoded(0), 16)
    assert "such as ' A '" in shared


def test_a_query_on_both_sides_and_much_lost_text_are_said() -> None:
    assert warnings_of(MIXED, {"dev": [pair("c", 1.0)]}, encoded(2), 16) == []
    shared, cut = warnings_of(MIXED, {"dev": MIXED[:2]}, encoded(3), 16)
    assert "1 queries are in the training and in the dev pairs (but for case" in shared
    assert "such as 'a'" in shared
    assert "30% of the training pairs are longer than 16 tokens" in cut
