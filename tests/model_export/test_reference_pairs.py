from __future__ import annotations

from model_export.reference_pairs import reference_pairs
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


def test_every_ad_has_an_id_of_its_own() -> None:
    ids = [ad.id for _, ad in reference_pairs()]
    assert len(set(ids)) == len(ids) == 240
