"""From a row to a pair, by the API's own rules and in its words."""

from __future__ import annotations

from typing import Any

from pydantic import Field, ValidationError

from service.api.schemas import AdIn, QueryText
from service.bulk.table import TEXT_COLUMNS, Row
from service.domain import Ad

MAX_UTF8_BYTES = 4  # of a character


class PairIn(AdIn):
    """The columns of a row that make a pair, under the rules of a request with one ad."""

    id: str = Field(default="")  # not looked at: whatever a column holds is carried through
    query: QueryText


def parse_pair(row: Row, limit_bytes: int) -> tuple[str, Ad]:
    """The query and the ad of a row. A column that is null is not there.

    Args:
        row: Its fields; others than `TEXT_COLUMNS` are not looked at.
        limit_bytes: The most that its texts may have, as UTF-8.

    Raises:
        ValueError: It is no pair; the message names the field and what is wrong.
    """
    given: dict[str, Any] = {}
    for name in TEXT_COLUMNS:
        value = row.get(name)
        if value is not None:
            given[name] = value
    try:
        pair = PairIn.model_validate(given)
    except ValidationError as error:
        raise ValueError(_first_fault(error)) from None
    _check_size(given, limit_bytes)
    return pair.query, pair.to_domain()


def _check_size(texts: dict[str, str], limit_bytes: int) -> None:
    if sum(map(len, texts.values())) * MAX_UTF8_BYTES <= limit_bytes:  # nearly always
        return
    n_bytes = sum(len(text.encode()) for text in texts.values())
    if n_bytes > limit_bytes:
        raise ValueError(f"the texts have {n_bytes} bytes, the limit is {limit_bytes}")


def _first_fault(error: ValidationError) -> str:
    fault = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(map(str, fault["loc"]))
    problem = fault["msg"].removeprefix("Value error, ")
    return f"{field}: {problem}" if field else problem
