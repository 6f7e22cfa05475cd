from __future__ import annotations

import json
import random
import statistics
from collections import Counter
from typing import Any

from deploy.loadtest.ad_traffic import ADS_PER_TOPIC, AdTraffic
from service.api.schemas import ScoreRequest
from service.settings import Settings

TRAFFIC = AdTraffic()


def bodies(n_bodies: int, n_ads: int = 20, seed: int = 1) -> list[dict[str, Any]]:
    rng = random.Random(seed)  # noqa: S311
    return [TRAFFIC.request_body(rng, n_ads, 50.0, f"load-{i}") for i in range(n_bodies)]


def test_every_body_is_one_that_the_service_takes() -> None:
    for body in [*bodies(200), *bodies(3, n_ads=1), *bodies(3, n_ads=ADS_PER_TOPIC)]:
        parsed = ScoreRequest.model_validate_json(json.dumps(body))
        assert parsed.timeout_ms == 50
        assert len({ad.id for ad in parsed.ads}) == len(body["ads"])


def test_as_many_ads_as_can_be_asked_for_fit_a_request() -> None:
    assert Settings.model_fields["max_ads_per_request"].default >= ADS_PER_TOPIC


def test_the_same_seed_asks_the_same() -> None:
    assert bodies(20, seed=5) == bodies(20, seed=5)
    assert bodies(20, seed=5) != bodies(20, seed=6)


def test_a_few_queries_come_all_the_time_and_most_hardly_ever() -> None:
    counts = Counter(body["query"] for body in bodies(2000, n_ads=1)).most_common()
    assert counts[0][1] > 2000 / 10
    assert len(counts) > 200
    assert statistics.median(n for _, n in counts) <= 3


def test_texts_are_as_long_as_those_of_ads() -> None:
    words = [
        len(f"{body['query']} {ad['title']} {ad.get('description', '')}".split())
        for body in bodies(200)
        for ad in body["ads"]
    ]
    # A word is about 1.3 tokens, and a pair has 3 special ones: 12-36 tokens on average.
    assert 12 < statistics.mean(words) * 1.3 + 3 < 36
    assert max(words) > 2 * min(words)
