"""What is wrong with a body, in our words: the first fault in the message, `details` for all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from service.api.schemas import AdIn
from service.errors import InvalidRequest, TooManyAds

MAX_REPORTED_FAULTS = 20
MAX_FIELD_CHARS = 100  # a caller's misspelt field name may be of any length


def invalid_request(error: ValidationError) -> InvalidRequest:
    """Our error for a body's faulty fields; of a great many it names the first and counts all."""
    return _told(_faults(error), error.error_count())


def invalid_score_request(error: ValidationError, body: bytes, max_ads: int) -> InvalidRequest:
    """Likewise for a request for scores, whose schema stops at the first faulty ad.

    Args:
        error: What the schema found.
        body: The request's.
        max_ads: That a request may carry; no more are looked at.

    Raises:
        TooManyAds: There are more.
    """
    faults = _faults(error)
    place = next((n for n, fault in enumerate(faults) if _is_of_an_ad(fault)), None)
    if place is None:
        return invalid_request(error)
    ads = from_json(body)["ads"]
    if len(ads) > max_ads:
        raise TooManyAds(len(ads), max_ads)
    others = [fault for fault in faults if not _is_of_an_ad(fault)]
    of_ads, n_of_ads = _faults_of_ads(ads)
    return _told([*others[:place], *of_ads, *others[place:]], len(others) + n_of_ads)


def json_problem(parsers_own: str) -> str:
    """What is wrong with a body that is no JSON, where the parser's words do not tell."""
    return parsers_own.replace(
        "unexpected end of hex escape", r"half of a surrogate pair, or a \u escape cut short,"
    )


def _faults_of_ads(ads: Sequence[object]) -> tuple[list[Any], int]:
    """Those that can be reported, and how many there are; only the former cost more than that."""
    reported: list[Any] = []
    n_faults = 0
    for index, ad in enumerate(ads):
        try:
            AdIn.model_validate(ad)
        except ValidationError as error:
            n_faults += error.error_count()
            if len(reported) < MAX_REPORTED_FAULTS:
                reported += [
                    {**fault, "loc": ("ads", index, *fault["loc"])} for fault in _faults(error)
                ]
    return reported, n_faults


def _is_of_an_ad(fault: Any) -> bool:  # noqa: ANN401  # pydantic's own record
    return fault["loc"][:1] == ("ads",) and len(fault["loc"]) > 1


def _faults(error: ValidationError) -> list[Any]:
    return list(error.errors(include_url=False, include_context=False, include_input=False))


def _told(faults: Iterable[Any], n_faults: int) -> InvalidRequest:
    details = [_detail(fault) for fault in islice(faults, MAX_REPORTED_FAULTS)]
    message = f"{details[0]['field']}: {details[0]['problem']}"
    if n_faults > 1:
        message += f" (and {n_faults - 1} more)"
    return InvalidRequest(message, details)


def _detail(fault: Any) -> dict[str, str]:  # noqa: ANN401  # pydantic's own record
    if fault["type"] == "json_invalid":
        return {"field": "body", "problem": json_problem(fault["msg"])}
    if fault["type"] in ("model_type", "model_attributes_type"):
        fault = {**fault, "msg": "Input should be an object"}  # not the name of a class of ours
    field = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in fault["loc"])
    return {
        "field": field.removeprefix(".")[:MAX_FIELD_CHARS] or "body",
        "problem": fault["msg"].removeprefix("Value error, ").replace(" after validation", ""),
    }
