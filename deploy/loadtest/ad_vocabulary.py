"""Words from which queries and ads are made up. All of it is written for this test.

Brands are invented. Change this file to load-test another kind of shop; nothing else depends on
what the words are.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Topic:
    """What one corner of the shop is about."""

    products: tuple[str, ...]
    qualities: tuple[str, ...]
    purposes: tuple[str, ...]
    brands: tuple[str, ...]


TOPICS = (
    Topic(
        products=("running shoes", "trail shoes", "racing flats", "walking shoes"),
        qualities=("lightweight", "waterproof", "cushioned", "wide fit", "carbon plate"),
        purposes=("marathon training", "flat feet", "muddy trails", "long distance", "beginners"),
        brands=("Velostride", "Northpace", "Quickfoot"),
    ),
    Topic(
        products=("laptop", "ultrabook", "gaming laptop", "convertible notebook"),
        qualities=("14 inch", "refurbished", "fanless", "16 GB RAM", "long battery life"),
        purposes=("students", "video editing", "travel", "home office", "programming"),
        brands=("Kestrel", "Orbitek", "Lumenbook"),
    ),
    Topic(
        products=("car insurance", "liability cover", "roadside assistance", "fleet insurance"),
        qualities=("cheap", "no deposit", "comprehensive", "monthly paid", "no claims bonus"),
        purposes=("new drivers", "electric cars", "two drivers", "over 60", "delivery vans"),
        brands=("Harbourline", "Surefold", "Greenway Mutual"),
    ),
    Topic(
        products=("espresso machine", "coffee grinder", "moka pot", "milk frother"),
        qualities=("automatic", "stainless steel", "quiet", "dual boiler", "compact"),
        purposes=("small kitchens", "latte art", "offices", "camping", "tight budgets"),
        brands=("Cremona", "Baristo", "Dark Hollow"),
    ),
    Topic(
        products=("garden hose", "lawn mower", "hedge trimmer", "sprinkler system"),
        qualities=("cordless", "expandable", "heavy duty", "battery powered", "self-propelled"),
        purposes=("small gardens", "sloping lawns", "dry summers", "tall hedges", "vegetable beds"),
        brands=("Greenhollow", "Mossworks", "Fernbrook"),
    ),
    Topic(
        products=("hotel", "holiday apartment", "beach resort", "city break"),
        qualities=("family friendly", "all inclusive", "last minute", "pet friendly", "sea view"),
        purposes=("two adults and two children", "a long weekend", "honeymoons", "hikers",
                  "business trips"),
        brands=("Casa Lume", "Stayfern", "Altamar"),
    ),
    Topic(
        products=("noise cancelling headphones", "wireless earbuds", "studio monitors", "soundbar"),
        qualities=("over ear", "bluetooth", "hi-res", "sweatproof", "low latency"),
        purposes=("open-plan offices", "flights", "the gym", "mixing at home", "gaming"),
        brands=("Auralis", "Tonehaus", "Pinedrum"),
    ),
    Topic(
        products=("dog food", "cat litter", "dog bed", "cat tree"),
        qualities=("grain free", "orthopaedic", "biodegradable", "large", "washable"),
        purposes=("senior dogs", "puppies", "indoor cats", "sensitive stomachs", "small flats"),
        brands=("Wagwell", "Purrfold", "Meadow & Paw"),
    ),
    Topic(
        products=("winter jacket", "rain coat", "down vest", "ski trousers"),
        qualities=("women's", "men's", "hooded", "recycled", "windproof"),
        purposes=("cycling to work", "alpine touring", "wet autumns", "minus 20 degrees",
                  "everyday wear"),
        brands=("Fjellvind", "Coldwater", "Harrow & Sons"),
    ),
    Topic(
        products=("online course", "language course", "data science bootcamp", "piano lessons"),
        qualities=("certified", "free trial", "self-paced", "part time", "live"),
        purposes=("complete beginners", "a career change", "busy parents", "exam preparation",
                  "team training"),
        brands=("Learnwright", "Polyglotta", "Opencourt"),
    ),
)  # fmt: skip

INTENTS = ("best", "cheap", "buy", "compare", "where to buy", "reviews of", "")

PROMISES = (
    "Free delivery and 30 days to change your mind.",
    "Order by noon, in your hands tomorrow.",
    "Rated excellent by more than 10,000 customers.",
    "Pay in three parts with no interest.",
    "Our experts answer by chat until midnight.",
    "Up to 25% off this week only.",
    "Made to last, with a five year warranty.",
    "Compare prices in a minute and save.",
)
