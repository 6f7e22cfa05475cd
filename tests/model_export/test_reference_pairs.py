from __future__ import annotations

from model_export.reference_pairs import reference_pairs, vocabulary_pairs
from service.scoring.ad_template import AdTemplate


def test_the_pairs_are_the_same_every_time() -> None:
    assert reference_pairs() == reference_pairs()
    assert reference_pairs(50) == reference_pairs()[:50]


def test_there_are_short_and_long_and_awkward_ones() -> None:
    texts = [AdTemplate().render(ad) for _, ad in reference_pairs()]
    assert min(len(text) for text in texts) < 5
    assert max(len(text) for text in texts) > 5000
    assert any("[SEP]" in text for text in texts)
    assert all(text for text in texts)


def test_the_pairs_cover_ads_that_fit_and_ads_of_another_query() -> None:
    queries_of: dict[str, set[str]] = {}
    for query, ad in reference_pairs():
        queries_of.setdefault(ad.title or ad.text, set()).add(query)
    assert max(len(queries) for queries in queries_of.values()) > 1
    assert len({query for query, _ in reference_pairs()}) > 20


def test_no_pair_comes_twice() -> None:
    texts = [(query, AdTemplate().render(ad)) for query, ad in reference_pairs(1000)]
    assert len(set(texts)) == 1000


def test_every_ad_has_an_id_of_its_own() -> None:
    ids = [ad.id for _, ad in reference_pairs()]
    assert len(set(ids)) == len(ids) == 240


def test_vocabulary_pairs_are_words_of_the_tokenizer_whatever_its_language() -> None:
    vocabulary = ["[PAD]", "##schuh", "▁lauf", "Ġred", "跑步", "1", "!", *map(str, range(50))]
    pairs = vocabulary_pairs(vocabulary)
    assert pairs == vocabulary_pairs(reversed(vocabulary))
    words = {word for pair in pairs for text in pair for word in text.split()}
    assert words == {"schuh", "lauf", "red", "跑步"}
    assert len(set(pairs)) == len(pairs)


def test_a_tokenizer_without_words_gets_pairs_too() -> None:
    assert vocabulary_pairs(["1", "##2"])
