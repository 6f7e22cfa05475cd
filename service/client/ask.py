"""What is asked. Types, and what can be right for no service, are judged here.

How many ads it takes and how long a text may be is the service's to judge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from service.client.arguments import described, instance, number
from service.domain import (
    MAX_ID_CHARS,
    REQUEST_ID_WORDS,
    Ad,
    fault_of_texts,
    is_request_id,
)

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
        ValueError: What no service takes: a query or an ad that says nothing, no ads, an id or a
            priority that there cannot be, a `min_score` outside 0-1.
    """
    return Ask(
        _checked_query(query),
        _checked_ads(ads),
        _checked_request_id(request_id),
        _checked_priority(priority),
        None if min_score is None else number("min_score", min_score, 0, 1),
    )


def _checked_query(query: object) -> str:
    text = _encodable("query", instance("query", query, str))
    if not text.strip():
        raise ValueError(f"query: takes a text that is not only white space, got {described(text)}")
    return text


def _encodable(name: str, text: str) -> str:
    """The text, if UTF-8 has bytes for it.

    Raises:
        ValueError: It holds half of a surrogate pair, which no service takes.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{name}: takes text, got half of a surrogate pair at character {error.start}"
        ) from None
    return text


def _checked_request_id(request_id: object) -> str:
    text = instance("request_id", request_id, str)
    if not is_request_id(text):
        raise ValueError(f"request_id: takes {REQUEST_ID_WORDS}, got {described(text)}")
    return text


def _checked_ads(ads: object) -> tuple[Ad, ...]:
    if isinstance(ads, Ad):
        raise TypeError("ads: takes a sequence of Ad, got a single one; put it into a list")
    if isinstance(ads, str | bytes | Mapping) or not isinstance(ads, Iterable):
        raise TypeError(f"ads: takes a sequence of Ad, got {described(ads)}")
    checked = tuple(ads)
    if not checked:
        raise ValueError("ads: takes one Ad or more, got none")
    for index, ad in enumerate(checked):
        instance(f"ads[{index}]", ad, Ad)
        for name in AD_FIELDS:
            where = f"ads[{index}].{name}"
            _encodable(where, instance(where, getattr(ad, name), str))
        if not 1 <= len(ad.id) <= MAX_ID_CHARS:
            raise ValueError(
                f"ads[{index}].id: takes 1 to {MAX_ID_CHARS} characters, got {len(ad.id)}"
            )
        fault = fault_of_texts(ad.title, ad.description, ad.text)
        if fault is not None:
            raise ValueError(f"ads[{index}]: {fault}")
    return checked


def _checked_priority(priority: object) -> PriorityName:
    for name in PRIORITIES:
        if priority == name:
            return name
    raise ValueError(f"priority: takes 'auction' or 'batch', got {described(priority)}")
