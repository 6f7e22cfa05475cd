from __future__ import annotations

import pytest

from model_export.held_out_queries import query_key, query_keys, shared_queries


@pytest.mark.parametrize("query", ["Red  Shoes", " red shoes ", "RED\tSHOES", "red\u00a0shoes"])
def test_case_and_white_space_make_no_other_query(query: str) -> None:
    assert query_key(query) == "red shoes"


def test_words_do() -> None:
    assert len(query_keys(["red shoes", "redshoes", "shoes red", "red shoe"])) == 4


def test_a_shared_query_is_named_once_as_the_held_out_side_has_it() -> None:
    held_out = ["lamp", "Red  Shoes", "red shoes", "Straße"]
    assert shared_queries(["RED SHOES", "sofa", "STRASSE"], held_out) == ["Red  Shoes", "Straße"]
    assert shared_queries(["sofa"], held_out) == []
