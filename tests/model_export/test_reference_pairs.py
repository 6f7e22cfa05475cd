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
