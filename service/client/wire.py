"""Requests to bytes, answers to results. Strict in what decides an auction, lenient in the rest.

Unknown fields of an answer are ignored, so that a newer service can be asked. An unknown status, a
missing ad, another order, another request's id or a score out of range is an error: it would rank
the wrong ad.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.client.ask import Ask
from service.client.errors import BadAnswer
from service.client.result import FROM_THE_MODEL, AdResult, AdStatus, ModelIdentity, Timing
from service.domain import Ad

ANSWER_BYTES = 65_536
ANSWER_BYTES_PER_AD = 1_024  # a score with its words takes about 100, an error of a field 200

SENT_BY_THE_SERVICE = {
    str(status): status for status in AdStatus if status is not AdStatus.FALLBACK
}


@dataclass(frozen=True, slots=True)
class Scored:
    """The contents of a 200."""

    model: ModelIdentity
    scores: tuple[AdResult, ...]
    timing: Timing


def body_without_timeout(ask: Ask) -> bytes:
    """The body of `POST /v1/score` from behind its first field, which is the timeout.

    Raises:
        ValueError: A number that is not finite.
    """
    fields: dict[str, Any] = {
        "query": ask.query,
        "ads": [_ad_fields(ad) for ad in ask.ads],
        "priority": ask.priority,
        "request_id": ask.request_id,
    }
    if ask.min_score is not None:
        fields["min_score"] = ask.min_score
    text = json.dumps(fields, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half a surrogate pair goes out as it is: the service refuses it, like every other bad text.
    return text[1:].encode("utf-8", "surrogatepass")


def body_with_timeout(rest: bytes, timeout_ms: float) -> bytes:
    """The whole body, of the same length for every timeout up to 10^10 ms.

    So the head of a request, with its length, can go out before the time that is left is taken.
    """
    return b'{"timeout_ms":%18.6f,' % timeout_ms + rest


class AnswerBytes:
    """An answer's body as it comes in, of no more than an answer to the request can need."""

    def __init__(self, n_ads: int, asked_bytes: int, http_status: int) -> None:
        # An answer repeats the ids, which are in the request, and says some words about each ad.
        self._most_bytes = ANSWER_BYTES + n_ads * ANSWER_BYTES_PER_AD + asked_bytes
        self._http_status = http_status
        self._pieces = bytearray()

    def add(self, piece: bytes) -> None:
        """Take the next piece.

        Raises:
            BadAnswer: It is too much.
        """
        self._pieces += piece
        if len(self._pieces) > self._most_bytes:
            problem = f"more than {self._most_bytes} bytes, and not at its end"
            raise BadAnswer("bad_answer", problem, http_status=self._http_status)

    def whole(self) -> bytes:
        """All that came."""
        return bytes(self._pieces)


def _ad_fields(ad: Ad) -> dict[str, str]:
    fields = {"id": ad.id, "title": ad.title, "description": ad.description, "text": ad.text}
    return {name: value for name, value in fields.items() if value or name == "id"}


def parse_answer(body: bytes, ask: Ask) -> Scored:
    """The scores of a 200.

    Args:
        body: As received.
        ask: What was asked; the answer must fit it.

    Raises:
        BadAnswer: Not the service's answer to this request; says what is wrong with it.
    """
    answer = _of_type(_json(body), dict, "the body")
    request_id = _of_type(answer.get("request_id"), str, "request_id")
    if request_id != ask.request_id:
        raise _bad(f"request_id: is {request_id!r:.100}, the request's is {ask.request_id!r:.100}")
    model = _of_type(answer.get("model"), dict, "model")
    times = _of_type(answer.get("timing_ms"), dict, "timing_ms")
    scores = _of_type(answer.get("scores"), list, "scores")
    if len(scores) != len(ask.ads):
        raise _bad(f"scores: {len(scores)} for {len(ask.ads)} ads")
    return Scored(
        ModelIdentity(
            _of_type(model.get("name"), str, "model.name"),
            _of_type(model.get("version"), str, "model.version"),
        ),
        tuple(
            _ad_result(item, ad, ask.min_score is not None, f"scores[{index}]")
            for index, (item, ad) in enumerate(zip(scores, ask.ads, strict=True))
        ),
        Timing(
            *(
                _number(times.get(stage), 1e12, f"timing_ms.{stage}")
                for stage in ("encode", "queue", "inference", "total")
            )
        ),
    )


def _ad_result(item: object, ad: Ad, wants_eligible: bool, where: str) -> AdResult:
    fields = _of_type(item, dict, where)
    if fields.get("id") != ad.id:
        raise _bad(f"{where}.id: is {fields.get('id')!r:.100}, the ad's is {ad.id!r}")
    name = _of_type(fields.get("status"), str, f"{where}.status")
    status = SENT_BY_THE_SERVICE.get(name)
    if status is None:
        raise _bad(f"{where}.status: {name!r:.100} is none that this client knows")
    score, eligible = fields.get("score"), fields.get("eligible")
    if status in FROM_THE_MODEL:
        score = _number(score, 1.0, f"{where}.score")
    elif score is not None:
        raise _bad(f"{where}.score: is {score!r:.100} though the status is {name}")
    if eligible is not None or (wants_eligible and score is not None):
        eligible = _of_type(eligible, bool, f"{where}.eligible")
    truncated = _of_type(fields.get("truncated", False), bool, f"{where}.truncated")
    return AdResult(ad.id, score, status, eligible, truncated)


def error_fields(body: bytes) -> tuple[str, str, Sequence[Mapping[str, Any]]] | None:
    """Code, message and details of an error body; None where it is not the service's."""
    try:
        error = _of_type(_of_type(_json(body), dict, "").get("error"), dict, "")
        code, message = (_of_type(error.get(name), str, "") for name in ("code", "message"))
        details = _of_type(error.get("details"), list, "")
    except BadAnswer:
        return None
    return code, message, [item for item in details if isinstance(item, dict)]


def _json(body: bytes) -> object:
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _bad(f"the body is not JSON: {body[:100]!r}") from error
    return parsed


def _of_type(value: object, kind: type[Any], where: str) -> Any:  # noqa: ANN401  # it is `kind`
    if type(value) is not kind:
        raise _bad(f"{where}: should be {kind.__name__}, is {value!r:.100}")
    return value


def _number(value: object, most: float, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise _bad(f"{where}: should be a number from 0 to {most:g}, is {value!r:.100}")
    return float(value)


def _bad(problem: str) -> BadAnswer:
    return BadAnswer("bad_answer", problem, http_status=200)
