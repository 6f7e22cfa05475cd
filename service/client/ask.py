"""What is asked. Types, and what can be right for no service, are judged here.

How many ads it takes and how long a text may be is the service's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from service.client.arguments import described, instance, number
from service.domain import Ad

PriorityName: TypeAlias = Literal["auction", "batch"]

PRIORITIES: tuple[PriorityName, ...] = ("auction", "batch")
AD_FIELDS = ("id", "title", "description", "text")


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked, apart from the time for it."""

    query: str
    ads: tuple[Ad, ...]
    request_id: str
    priority: PriorityName = "auction"
    min_score: float | None = None


def checked_ask(
    query: object,
    ads: object,
    request_id: object,
    priority: object = "auction",
    min_score: object = None,
) -> Ask:
    """What is asked, if it can be.

    Raises:
        TypeError: An argument of another type; says which, and what it takes.
        ValueError: A priority that there is not, or a `min_score` outside 0-1.
    """
    return Ask(
        instance("query", query, str),
        _checked_ads(ads),
        instance("request_id", request_id, str),
        _checked_priority(priority),
        None if min_score is None else number("min_score", min_score, 0, 1),
    )


def _checked_ads(ads: object) -> tuple[Ad, ...]:
    if isinstance(ads, Ad):
        raise TypeError("ads: takes a sequence of Ad, got a single one; put it into a list")
    if isinstance(ads, str | bytes | Mapping) or not isinstance(ads, Iterable):
        raise TypeError(f"ads: takes a sequence of Ad, got {described(ads)}")
    checked = tuple(ads)
    for index, ad in enumerate(checked):
        instance(f"ads[{index}]", ad, Ad)
        for name in AD_FIELDS:
            instance(f"ads[{index}].{name}", getattr(ad, name), str)
    return checked


def _checked_priority(priority: object) -> PriorityName:
    for name in PRIORITIES:
        if priority == name:
            return name
    raise ValueError(f"priority: takes 'auction' or 'batch', got {described(priority)}")
