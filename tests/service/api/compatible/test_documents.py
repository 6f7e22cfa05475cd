from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.api.compatible.documents import document_texts, priority_class, ranking
from service.domain import Priority
from service.errors import InvalidRequest


@given(st.lists(st.sampled_from([0.1, 0.5, 0.9]) | st.floats(allow_nan=False)))
def test_a_ranking_goes_down_and_keeps_the_order_of_equals(values: list[float]) -> None:
    order = ranking(values)
    assert sorted(order) == list(range(len(values)))
    for before, after in itertools.pairwise(order):
        assert values[before] > values[after] or (
            values[before] == values[after] and before < after
        )


@pytest.mark.parametrize(
    ("top_n", "kept"), [(None, 3), (0, 3), (1, 1), (3, 3), (4, 3), (10**30, 3)]
)
def test_the_best_n_are_kept_and_none_or_zero_keeps_all(top_n: int | None, kept: int) -> None:
    assert ranking([0.2, 0.9, 0.5], top_n) == [1, 2, 0][:kept]


def test_a_document_is_a_string_or_an_object_with_a_text() -> None:
    documents = ["red", {"text": "blue", "price": 7}, ""]
    assert document_texts(documents) == ["red", "blue", ""]


def test_rank_fields_say_what_is_read_and_in_which_order() -> None:
    documents = ["red", {"title": "shoe", "text": "unread", "colour": "blue"}]
    assert document_texts(documents, ["colour", "title"]) == ["red", "blue shoe"]


def test_rank_fields_that_a_document_lacks_are_skipped_and_numbers_are_read() -> None:
    documents = [{"title": "shoe", "size": 43}, {"size": 9.5, "title": None}, {"title": ""}]
    assert document_texts(documents, ["title", "size"]) == ["shoe 43", "9.5", ""]


@pytest.mark.parametrize("document", [None, 7, ["red"], {}, {"text": None}, {"text": ["red"]}])
def test_anything_else_is_refused_by_its_number(document: object) -> None:
    with pytest.raises(InvalidRequest, match=r"documents\[1\]: must") as caught:
        document_texts(["red", document])
    assert caught.value.details[0]["field"] == "documents[1]"


@pytest.mark.parametrize(
    ("level", "most_urgent", "expected"),
    [
        (None, 0, Priority.AUCTION),
        (0, 0, Priority.AUCTION),
        (1, 0, Priority.BATCH),
        (999, 0, Priority.BATCH),
        (1, 1, Priority.AUCTION),
        (2, 1, Priority.BATCH),
    ],
)
def test_numbers_beyond_the_most_urgent_are_bulk_work(
    level: int | None, most_urgent: int, expected: Priority
) -> None:
    assert priority_class(level, most_urgent) is expected
