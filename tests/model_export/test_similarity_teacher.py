from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from model_export.similarity_teacher import SimilarityTeacher
from model_export.training import TargetRow
from tests.model_export.tiny_bert import WORDS, write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

NOUNS = WORDS[3:8]
ROWS = [
    TargetRow(f"{color} {wanted}", f"{color} {offered} office", float(wanted == offered))
    for color in WORDS[:3]
    for wanted in NOUNS
    for offered in NOUNS
]


@pytest.fixture
def teacher(tmp_path: Path) -> SimilarityTeacher:
    return SimilarityTeacher(write_tiny_base(tmp_path / "base"), ROWS, show_progress=False)


def test_no_more_rows_come_back_than_asked_for(teacher: SimilarityTeacher) -> None:
    rows = teacher.make_rows(30, rows_per_query=6, pseudo_query_share=0.3, seed=0)
    assert len(rows) == 30
    assert all(0 < row.target < 1 for row in rows)


def test_known_texts_are_paired_anew_and_no_pair_comes_twice(teacher: SimilarityTeacher) -> None:
    rows = teacher.make_rows(60, rows_per_query=4, pseudo_query_share=0.0, seed=0)
    assert {row.query for row in rows} <= {row.query for row in ROWS}
    assert {row.ad_text for row in rows} <= {row.ad_text for row in ROWS}
    counts = Counter((row.query, row.ad_text) for row in rows)
    assert max(counts.values()) == 1


def test_pseudo_queries_are_words_of_the_ads(teacher: SimilarityTeacher) -> None:
    rows = teacher.make_rows(100, rows_per_query=6, pseudo_query_share=0.3, seed=0)
    new = {row.query for row in rows} - {row.query for row in ROWS}
    assert new
    assert all(any(query in row.ad_text for row in ROWS) for query in new)


def test_the_seed_decides_the_rows(teacher: SimilarityTeacher) -> None:
    def make(seed: int) -> list[TargetRow]:
        return teacher.make_rows(50, rows_per_query=6, pseudo_query_share=0.3, seed=seed)

    assert make(0) == make(0)
    assert make(0) != make(1)


def test_blending_moves_targets_and_nothing_else(teacher: SimilarityTeacher) -> None:
    assert teacher.blend_into(ROWS, share=0.0) == ROWS
    blended = teacher.blend_into(ROWS, share=0.5)
    for before, after in zip(ROWS, blended, strict=True):
        assert (after.query, after.ad_text) == (before.query, before.ad_text)
        assert abs(after.target - before.target) <= 0.5
    assert blended != ROWS
