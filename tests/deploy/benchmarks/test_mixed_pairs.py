from __future__ import annotations

import statistics
from collections import Counter
from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from deploy.benchmarks.mixed_pairs import LONGEST_TOKENS, SHORTEST_TOKENS, mixed_requests


@pytest.fixture
def tokenizer(tiny_bundle_int8: Path) -> Tokenizer:
    return Tokenizer.from_file(str(tiny_bundle_int8 / "tokenizer.json"))


def test_every_length_from_8_to_64_tokens_comes_equally_often(tokenizer: Tokenizer) -> None:
    requests = mixed_requests(tokenizer, seed=1, n_requests=57, n_ads=4)
    lengths = Counter(len(tokenizer.encode(r.query, ad).ids) for r in requests for ad in r.ads)
    assert lengths == dict.fromkeys(range(SHORTEST_TOKENS, LONGEST_TOKENS + 1), 4)
    assert statistics.mean(lengths.elements()) == 36


def test_pairs_may_be_shorter(tokenizer: Tokenizer) -> None:
    requests = mixed_requests(tokenizer, seed=1, n_requests=25, n_ads=2, longest_tokens=32)
    lengths = Counter(len(tokenizer.encode(r.query, ad).ids) for r in requests for ad in r.ads)
    assert lengths == dict.fromkeys(range(SHORTEST_TOKENS, 33), 2)
    assert statistics.mean(lengths.elements()) == 20


def test_no_query_comes_twice_and_no_ad_twice_in_a_request(tokenizer: Tokenizer) -> None:
    requests = mixed_requests(tokenizer, seed=1, n_requests=50, n_ads=20)
    assert len({request.query for request in requests}) == 50
    assert all(len(set(request.ads)) == 20 for request in requests)


def test_the_seed_decides_the_requests(tokenizer: Tokenizer) -> None:
    first = mixed_requests(tokenizer, seed=1, n_requests=3, n_ads=5)
    assert first == mixed_requests(tokenizer, seed=1, n_requests=3, n_ads=5)
    assert first != mixed_requests(tokenizer, seed=2, n_requests=3, n_ads=5)


def test_more_different_texts_than_the_words_allow_are_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(ValueError, match="no more different texts"):
        mixed_requests(tokenizer, seed=1, n_requests=1, n_ads=20_000)


def test_a_tokenizer_whose_words_run_together_is_refused() -> None:
    joins_all = Tokenizer(WordLevel({"[UNK]": 0}, "[UNK]"))  # any text is one unknown word
    with pytest.raises(ValueError, match="one by one"):
        mixed_requests(joins_all, seed=1, n_requests=1, n_ads=1)
