from __future__ import annotations

import pytest
from transformers import BertConfig

from model_export.errors import UnsupportedCheckpoint
from model_export.read_head import read_head
from service.scoring.head import Head


def labels(*names: str, **config: object) -> BertConfig:
    return BertConfig(num_labels=len(names), id2label=dict(enumerate(names)), **config)


@pytest.mark.parametrize("problem_type", [None, "regression", "multi_label_classification"])
def test_one_logit_needs_no_names_whatever_it_was_trained_as(problem_type: str | None) -> None:
    assert read_head(labels("LABEL_0", problem_type=problem_type), None) == Head(
        kind="binary", n_logits=1
    )


def test_options_that_one_logit_has_no_use_for_are_refused() -> None:
    with pytest.raises(UnsupportedCheckpoint, match="has one logit"):
        read_head(labels("LABEL_0"), "LABEL_0")
    with pytest.raises(UnsupportedCheckpoint, match="has one logit"):
        read_head(labels("LABEL_0"), None, "LABEL_0")


@pytest.mark.parametrize("other", ["irrelevant", "not_relevant", "Not Relevant", "LABEL_1"])
def test_the_class_named_relevant_is_the_relevant_one_of_two(other: str) -> None:
    assert read_head(labels("Relevant", other), None).relevant_index == 0
    assert read_head(labels(other, "is-relevant"), None).relevant_index == 1


def test_the_user_names_the_relevant_one_of_two_by_name_or_index() -> None:
    assert read_head(labels("no", "yes"), "yes").relevant_index == 1
    assert read_head(labels("LABEL_0", "LABEL_1"), "0").relevant_index == 0
    assert read_head(labels("LABEL_0", "LABEL_1"), "LABEL_1").relevant_index == 1


def test_a_label_that_looks_like_an_index_is_still_that_label() -> None:
    assert read_head(labels("1", "0"), "1").relevant_index == 0
    assert read_head(labels("1", "0"), "0").relevant_index == 1


@pytest.mark.parametrize(
    "names",
    [
        ("LABEL_0", "LABEL_1"),
        ("0", "1"),
        ("no", "yes"),
        ("NEGATIVE", "POSITIVE"),  # of what?
        ("relevant", "is_relevant"),
    ],
)
def test_two_classes_without_a_meaning_are_refused_and_never_guessed(
    names: tuple[str, str],
) -> None:
    with pytest.raises(UnsupportedCheckpoint, match="--relevant-label") as caught:
        read_head(labels(*names), None)
    assert str(list(names)) in str(caught.value), "the user must see what there is to choose"


def test_a_label_that_does_not_exist_or_is_ambiguous_is_refused() -> None:
    with pytest.raises(UnsupportedCheckpoint, match=r"\['no', 'yes'\]: --relevant-label maybe"):
        read_head(labels("no", "yes"), "maybe")
    with pytest.raises(UnsupportedCheckpoint, match="more than one"):
        read_head(labels("same", "same"), "same")
    assert read_head(labels("same", "same"), "1").relevant_index == 1


@pytest.mark.parametrize(
    "names",
    [
        ("0", "1", "2"),
        ("grade_1", "grade_2", "grade_3", "grade_4"),
        ("irrelevant", "complement", "substitute", "exact"),
        ("Irrelevant", "Substitute", "Exact"),
        ("not_relevant", "partially relevant", "relevant", "highly-relevant"),
        ("irrelevant", "related", "highly_relevant", "perfectly_relevant"),
    ],
)
def test_labels_that_state_their_order_are_grades_in_any_order(names: tuple[str, ...]) -> None:
    n = len(names)
    assert read_head(labels(*names), None) == Head(kind="ordinal", n_logits=n)
    best_first = read_head(labels(*reversed(names)), None)
    assert best_first.kind == "ordinal"
    assert best_first.grades == pytest.approx([1 - i / (n - 1) for i in range(n)])


def test_esci_as_it_is_sorted_by_the_alphabet_is_put_in_order() -> None:
    head = read_head(labels("complement", "exact", "irrelevant", "substitute"), None)
    assert head.grades == pytest.approx([1 / 3, 1, 0, 2 / 3])


def test_numbers_keep_their_distances() -> None:
    assert read_head(labels("0", "1", "4"), None).grades == pytest.approx([0, 0.25, 1])
    assert read_head(labels("grade 3", "grade 1", "grade 0"), None).grades == pytest.approx(
        [1, 1 / 3, 0]
    )


@pytest.mark.parametrize(
    "names",
    [
        ("contradiction", "entailment", "neutral"),
        ("LABEL_0", "LABEL_1", "LABEL_2"),
        ("1 star", "2 stars", "3 stars"),
        ("bad", "fair", "good"),
        ("0", "1", "1"),
        ("grade_0", "1", "2"),
        ("irrelevant", "relevant", "exact"),  # of two scales
        ("irrelevant", "not_relevant", "relevant"),  # two names of one grade
    ],
)
def test_more_classes_without_an_order_are_refused_with_both_ways_out(
    names: tuple[str, ...],
) -> None:
    with pytest.raises(UnsupportedCheckpoint, match=r"--grades.*--relevant-label") as caught:
        read_head(labels(*names), None)
    assert str(list(names)) in str(caught.value)


def test_the_user_can_name_the_relevant_one_of_many() -> None:
    nli = labels("contradiction", "entailment", "neutral")
    expected = Head(kind="multiclass", n_logits=3, relevant_index=1)
    assert read_head(nli, "entailment") == read_head(nli, "1") == expected
    # Also where the labels would state an order: the user's word goes before theirs.
    assert read_head(labels("0", "1", "2"), "2").kind == "multiclass"


def test_the_user_can_put_the_classes_in_order_by_name_or_index() -> None:
    nli = labels("contradiction", "entailment", "neutral")
    by_name = read_head(nli, None, "contradiction, neutral, entailment")
    assert by_name == Head(kind="ordinal", n_logits=3, grades=(0, 1, 0.5))
    assert read_head(nli, None, "0,2,1") == by_name
    assert read_head(labels("bad", "fair", "good"), None, "bad,fair,good").grades == ()


def test_the_better_one_of_two_grades_is_the_relevant_one() -> None:
    expected = Head(kind="binary", n_logits=2, relevant_index=0)
    assert read_head(labels("good", "bad"), None, "bad,good") == expected


@pytest.mark.parametrize("grades", ["a,b", "a,b,b", "a,b,c,a", "a,b,d", "", "0,1,3"])
def test_an_order_that_does_not_name_each_label_once_is_refused(grades: str) -> None:
    with pytest.raises(UnsupportedCheckpoint, match=r"\['a', 'b', 'c'\].*--grades"):
        read_head(labels("a", "b", "c"), None, grades)


def test_one_relevant_class_and_an_order_of_all_exclude_each_other() -> None:
    with pytest.raises(UnsupportedCheckpoint, match="not both"):
        read_head(labels("a", "b", "c"), "a", "a,b,c")


@pytest.mark.parametrize("problem_type", ["multi_label_classification", "regression"])
def test_several_logits_that_do_not_exclude_each_other_are_refused(problem_type: str) -> None:
    config = labels("relevant", "clicked", problem_type=problem_type)
    with pytest.raises(UnsupportedCheckpoint, match=f"problem_type {problem_type}"):
        read_head(config, "relevant")


def test_labels_with_gaps_in_their_numbers_are_refused() -> None:
    config = BertConfig(id2label={1: "irrelevant", 2: "relevant"})
    with pytest.raises(UnsupportedCheckpoint, match=r"numbers \[1, 2\]"):
        read_head(config, None)


def test_a_minus_is_part_of_a_grade() -> None:
    head = read_head(labels("grade -2", "grade -1", "grade 0"), None)
    assert head.grades == (), "evenly, worst first"
    head = read_head(labels("relevance 3", "relevance -1", "relevance 0"), None)
    assert head.grades == (1.0, 0.0, 0.25)
