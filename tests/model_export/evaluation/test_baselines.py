from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from model_export.errors import ExportError
from model_export.evaluation.baselines import (
    base_cosines,
    bm25,
    bm25_ranker,
    score_baselines,
    word_overlap,
    words,
)
from model_export.pairs import LabelledPair
from model_export.sentence_embedding import embed_texts
from service.domain import Ad
from tests.model_export.tiny_bert import write_tiny_base

if TYPE_CHECKING:
    from pathlib import Path

ADS = ["red shoe red shoe lamp", "blue shoe", "green chair", "..."]


def bm25_by_hand(query: list[str], document: list[str], corpus: list[list[str]]) -> float:
    """Robertson's formula with Lucene's idf, which is never negative."""
    k1, b = 1.5, 0.75
    mean_length = sum(map(len, corpus)) / len(corpus)
    score = 0.0
    for word in query:
        n_with = sum(word in other for other in corpus)
        idf = math.log(1 + (len(corpus) - n_with + 0.5) / (n_with + 0.5))
        count = document.count(word)
        score += idf * count / (count + k1 * (1 - b + b * len(document) / mean_length))
    return score


def test_words_are_runs_of_letters_and_digits_in_lower_case() -> None:
    assert words("Größe-42, USB_C!") == ["größe", "42", "usb_c"]


def test_word_overlap_is_the_share_of_the_querys_words_that_the_ad_has() -> None:
    queries = ["Red shoe shoe sale", "lamp", "!!"]
    ads = ["a red shoe", "a chair", "anything"]
    assert word_overlap(queries, ads).tolist() == pytest.approx([2 / 3, 0, 0])


def test_bm25_is_the_formula_over_the_ads_given_each_counted_once() -> None:
    pytest.importorskip("bm25s")
    queries = ["red shoe", "shoe chair", "red shoe", "chair"]
    ads = [ADS[0], ADS[1], ADS[1], ADS[2]]
    corpus = [words(text) for text in ADS[:3]]
    expected = [
        bm25_by_hand(words(query), words(ad), corpus)
        for query, ad in zip(queries, ads, strict=True)
    ]
    assert bm25(queries, ads).tolist() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("query", ["", "!!", "unknown"])
def test_a_query_that_shares_no_word_scores_nothing(query: str) -> None:
    pytest.importorskip("bm25s")
    assert bm25_ranker(ADS)(query).tolist() == [0, 0, 0, 0]
    assert bm25_ranker(["...", "!"])("shoe").tolist() == [0, 0]


def test_without_bm25s_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bm25s", None)
    with pytest.raises(ExportError, match="pip install bm25s"):
        bm25_ranker(ADS)


def test_cosines_are_those_of_the_base_encoders_embeddings(tmp_path: Path) -> None:
    base = write_tiny_base(tmp_path / "base")
    queries, ads = ["red shoes", "lamp", "red shoes"], ["blue shoes", "office lamp", "red shoes"]
    cosines = base_cosines(queries, ads, str(base), show_progress=False)
    assert list(cosines) == ["cosine, [CLS]", "cosine, mean", "cosine, cat4"]
    for values in cosines.values():
        assert values[2] == pytest.approx(1)
        assert (np.abs(values[:2]) < 1).all()
    left, right = embed_texts(base, queries), embed_texts(base, ads)
    np.testing.assert_allclose(cosines["cosine, mean"], (left * right).sum(axis=1), atol=1e-6)


def test_all_baselines_read_title_and_description_and_claim_no_probability(tmp_path: Path) -> None:
    pytest.importorskip("bm25s")
    base = write_tiny_base(tmp_path / "base")
    pairs = [
        LabelledPair("red shoes", Ad("1", title="shoes", description="red"), 1),
        LabelledPair("red shoes", Ad("2", title="lamp"), 0),
    ]
    scored = score_baselines(pairs, str(base))
    assert [one.name for one in scored[:2]] == ["word overlap", "BM25"]
    assert scored[0].scores.tolist() == [1, 0]
    assert scored[1].scores[0] > scored[1].scores[1] == 0
    assert len(scored) == 5
    assert not any(one.are_probabilities for one in scored)
