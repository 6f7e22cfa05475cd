"""What an ad server asks: one query, the ads that are eligible for it, a timeout.

Queries and ads come from two fixed catalogues and are drawn by Zipf's law, as in search: a few
are asked for all the time, most hardly ever. Nothing here knows locust or HTTP.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from deploy.loadtest.ad_vocabulary import INTENTS, PROMISES, TOPICS, Topic

CATALOGUE_SEED = 7
QUERIES_PER_TOPIC = 50
ADS_PER_TOPIC = 150
ZIPF_EXPONENT = 1.0  # what query logs and catalogues of goods are usually found to follow
ON_TOPIC_SHARE = 0.7  # retrieval is not perfect: the other ads are about something else

Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class CatalogueAd:
    """An ad as the ad server stores it; `description` may be empty."""

    id: str
    title: str
    description: str

    def as_body(self) -> dict[str, str]:
        """The ad in the words of `POST /v1/score`."""
        body = {"id": self.id, "title": self.title}
        return {**body, "description": self.description} if self.description else body


class ZipfSampler(Generic[Item]):
    """Draws items so that the one at rank r comes with a weight of 1 / r ** ZIPF_EXPONENT."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = items
        weights = (1 / rank**ZIPF_EXPONENT for rank in range(1, len(items) + 1))
        self._cumulative = list(itertools.accumulate(weights))

    def draw(self, rng: random.Random, n_items: int) -> list[Item]:
        """`n_items` items; the same one may come twice."""
        return rng.choices(self._items, cum_weights=self._cumulative, k=n_items)


class AdTraffic:
    """Request bodies without end. All users share one catalogue; each has its own `rng`."""

    def __init__(self) -> None:
        rng = random.Random(CATALOGUE_SEED)  # noqa: S311  # the same catalogue in every run
        queries = [
            (i, _query(rng, t)) for i, t in enumerate(TOPICS) for _ in range(QUERIES_PER_TOPIC)
        ]
        ads = [
            [_ad(rng, topic, f"ad-{i}-{n}") for n in range(ADS_PER_TOPIC)]
            for i, topic in enumerate(TOPICS)
        ]
        rng.shuffle(queries)  # otherwise the first topic would have all the frequent ones
        every_ad = list(itertools.chain.from_iterable(ads))
        rng.shuffle(every_ad)
        self._queries = ZipfSampler(queries)
        self._ads_of_topic = [ZipfSampler(of_topic) for of_topic in ads]
        self._any_ad = ZipfSampler(every_ad)

    def request_body(
        self, rng: random.Random, n_ads: int, timeout_ms: float, request_id: str
    ) -> dict[str, Any]:
        """One body for `POST /v1/score`, with `n_ads` different ads.

        Args:
            rng: Decides everything; two of the same seed give the same bodies.
            n_ads: At least 1, at most `ADS_PER_TOPIC`.
            timeout_ms: Milliseconds that the service may take.
            request_id: Echoed by the service.
        """
        [(topic_index, query)] = self._queries.draw(rng, 1)
        ads: dict[str, CatalogueAd] = {}
        while len(ads) < n_ads:
            on_topic = rng.random() < ON_TOPIC_SHARE
            sampler = self._ads_of_topic[topic_index] if on_topic else self._any_ad
            [ad] = sampler.draw(rng, 1)
            ads[ad.id] = ad
        return {
            "query": query,
            "ads": [ad.as_body() for ad in ads.values()],
            "timeout_ms": timeout_ms,
            "request_id": request_id,
        }


def _query(rng: random.Random, topic: Topic) -> str:
    """2 to 9 words: an intent, a quality, a product, a purpose, most of them left out at times."""
    words = [rng.choice(topic.products)]
    if rng.random() < 0.6:
        words.insert(0, rng.choice(topic.qualities))
    if rng.random() < 0.4:
        words.insert(0, rng.choice(INTENTS))
    if rng.random() < 0.3:
        words.append("for " + rng.choice(topic.purposes))
    return " ".join(words).strip()


def _ad(rng: random.Random, topic: Topic, ad_id: str) -> CatalogueAd:
    product, quality = rng.choice(topic.products), rng.choice(topic.qualities)
    title = f"{rng.choice(topic.brands)} {quality} {product}".title()
    if rng.random() < 0.4:
        title += f" - {rng.randrange(10, 60, 5)}% Off"
    sentences = []
    if rng.random() < 0.7:
        sentences.append(f"{quality.capitalize()} {product} for {rng.choice(topic.purposes)}.")
    sentences += rng.sample(PROMISES, k=rng.choice((0, 0, 1, 1, 2)))
    return CatalogueAd(ad_id, title, " ".join(sentences))
