"""Pairs that every export is checked on when the user brings none: written for this project.

Real texts would have a licence and a domain; these only need to cover what a graph can get wrong:
short and long, related and not, and text that is awkward for a tokenizer.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from service.domain import Ad

SEED = 20261130

# A query, an ad that fits it, and an ad that is near but misses it.
_TRIPLES = (
    ("running shoes for marathons", "Carbon plate marathon running shoes", "Rubber boots for rain"),
    (
        "wireless noise cancelling headphones",
        "Over-ear headphones with active noise cancelling",
        "Replacement ear pads, pack of two",
    ),
    ("cheap flights to lisbon", "Fly to Lisbon from 29 this spring", "Hotels near Lisbon airport"),
    ("4k monitor 27 inch", "27 inch UHD monitor, 3840 x 2160, IPS", "VESA wall mount for monitors"),
    ("dog food for puppies", "Puppy dry food with chicken and rice", "Dog leash, nylon, 2 metres"),
    (
        "electric toothbrush heads",
        "Brush heads for sonic toothbrushes, 8 pieces",
        "Sonic toothbrush with travel case",
    ),
    (
        "office chair lumbar support",
        "Ergonomic desk chair with adjustable lumbar support",
        "Chair mat for hard floors",
    ),
    ("garden hose 30m", "Expandable garden hose, 30 metres, with nozzle", "Sprinkler for lawns"),
    (
        "gift for 5 year old boy",
        "Wooden train set, 60 pieces, from 3 years",
        "Gift wrap, 10 sheets",
    ),
    (
        "laptop 16gb ram",
        "14 inch laptop, 16 GB memory, 512 GB SSD",
        "16 GB memory stick for laptops",
    ),
    ("car insurance young driver", "Car insurance for drivers under 25", "Car seat covers, black"),
    ("vegan protein powder", "Pea protein powder, vanilla, 1 kg, vegan", "Whey protein, chocolate"),
    ("red evening dress", "Long satin evening dress in red", "Red evening bag with chain"),
    ("usb c charger 65w", "65 W USB-C wall charger with two ports", "USB-C to USB-C cable, 2 m"),
    (
        "learn spanish online",
        "Online Spanish course with live teachers",
        "Spanish olive oil, 750 ml",
    ),
    ("mountain bike helmet", "Bike helmet for trail and enduro", "Mountain bike tyre 29 x 2.3"),
    (
        "coffee machine with grinder",
        "Bean-to-cup coffee machine with built-in grinder",
        "Coffee beans, dark roast, 1 kg",
    ),
    ("kids swimming goggles", "Swimming goggles for children, anti-fog", "Adult swimming cap"),
    (
        "printer ink cartridges",
        "Ink cartridge multipack, black and colour",
        "Photo paper, 100 sheets",
    ),
    ("waterproof hiking jacket", "Three-layer rain jacket for hikers", "Hiking socks, merino"),
)

_DESCRIPTIONS = (
    "",
    "Free delivery.",
    "Top rated by thousands of customers; returns within 30 days at no cost.",
    "Made to last, with a two year warranty and spare parts that you can order for ten years. "
    "Order before 3 pm and it leaves our warehouse today.",
    "Compare prices, read what others say about it and find the shop that suits you best. All "
    "offers include tax, and many of them come with free shipping, a longer warranty or a small "
    "gift. Stock and prices change through the day, so what you see here may differ in the shop.",
)

_AWKWARD = (
    ("跑步鞋", "轻量马拉松跑鞋"),
    ("café crème", "Café crème, 10 capsules"),
    ("🎧 headphones", "🎧🎧🎧 50 % off!!!"),
    ("[SEP] [CLS]", "[SEP] [MASK] best ad [SEP]"),
    ("a", "b"),
    ("tv", "t" * 400),
    ("ïñtërnâtiônàl", "I\u0301n\u0308te\u0308rna\u0302tional"),
    ("zero\u200bwidth \u0007bell", "tab\tand\nnew line"),
    ("long story", "word " * 2000),
    ("what is the best and cheapest way to " * 20, "Short ad"),
)


N_AWKWARD = len(_AWKWARD)


def vocabulary_pairs(vocabulary: Iterable[str], n_pairs: int = 22) -> list[tuple[str, str]]:
    """Query and ad text of pairs made of the tokenizer's own words, in whatever language.

    The pairs of this file have a few hundred words between them. These reach rows of the embedding
    table from all over, so that a table that was shuffled or damaged is noticed.

    Args:
        vocabulary: The tokenizer's tokens.
        n_pairs: How many pairs.
    """
    rng = random.Random(SEED)  # noqa: S311  # a fixed sequence is wanted
    stems = {token.removeprefix("##").lstrip("\u2581\u0120") for token in vocabulary}
    words = sorted(word for word in stems if word.isalpha()) or ["a"]
    return [
        (" ".join(rng.choices(words, k=6)), " ".join(rng.choices(words, k=50)))
        for _ in range(n_pairs)
    ]


def reference_pairs(n_pairs: int = 240) -> list[tuple[str, Ad]]:
    """Query and ad of each pair: the awkward ones first, then every kind of match and length.

    The same list on every machine, and no pair twice: a second one would prove nothing more.

    Args:
        n_pairs: At most some 2,000, which is how many there are.
    """
    rng = random.Random(SEED)  # noqa: S311  # a fixed sequence is wanted
    pairs = [(query, Ad(id=f"awkward-{i}", text=text)) for i, (query, text) in enumerate(_AWKWARD)]
    made: set[tuple[str, str, str]] = set()
    while len(pairs) < n_pairs:
        query, fits, near = rng.choice(_TRIPLES)
        _, stranger, _ = rng.choice(_TRIPLES)
        title = rng.choice((fits, fits, near, stranger))
        texts = (query, title, rng.choice(_DESCRIPTIONS))
        if texts not in made:
            made.add(texts)
            pairs.append((query, Ad(f"made-{len(pairs)}", *texts[1:])))
    return pairs[:n_pairs]
