from __future__ import annotations

import json
from typing import Any

import pytest

from deploy.faults.outcomes import Outcome, Request, judge

REQUEST = Request("r1", "red", ("shoe", "bag"))
MODELS = {
    "v1": {("red", "shoe"): 0.5, ("red", "bag"): 0.25},
    "v2": {("red", "shoe"): 0.75, ("red", "bag"): 0.125},
}


def answer(**changes: Any) -> bytes:  # noqa: ANN401  # any JSON
    scores = [{"id": "0", "score": 0.5, "status": "ok"}, {"id": "1", "score": 0.25, "status": "ok"}]
    body = {"request_id": "r1", "model": {"version": "v1"}, "scores": scores, **changes}
    return json.dumps(body).encode()


def scores(*ads: tuple[str, float | None, str]) -> list[dict[str, object]]:
    return [{"id": ad_id, "score": score, "status": status} for ad_id, score, status in ads]


def test_an_answer_with_all_scores_is_good_and_names_its_model() -> None:
    judged = judge(REQUEST, 200, answer(), MODELS)
    assert (judged.outcome, judged.version) == (Outcome.OK, "v1")


@pytest.mark.parametrize(
    ("status", "outcome"), [("deadline", Outcome.PARTIAL), ("failed", Outcome.FAILED)]
)
def test_an_ad_without_a_score_says_why(status: str, outcome: Outcome) -> None:
    part = answer(scores=scores(("0", 0.5, "ok"), ("1", None, status)))
    assert judge(REQUEST, 200, part, MODELS).outcome is outcome


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"request_id": "r2"}, "the answer of r2"),
        ({"model": {"version": "v3"}}, "unknown model v3"),
        ({"scores": scores(("0", 0.5, "ok"))}, "its ads are not"),
        ({"scores": scores(("1", 0.25, "ok"), ("0", 0.5, "ok"))}, "its ads are not"),
        ({"scores": scores(("0", 0.5, "ok"), ("1", 0.125, "ok"))}, "score 0.125, not 0.25"),
        ({"model": {"version": "v2"}}, "score 0.5, not 0.75"),
    ],
)
def test_an_answer_of_another_request_model_or_ad_is_wrong(
    changes: dict[str, object], why: str
) -> None:
    judged = judge(REQUEST, 200, answer(**changes), MODELS)
    assert judged.outcome is Outcome.WRONG
    assert why in judged.why


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (429, "queue_full", Outcome.SHED),
        (503, "not_ready", Outcome.NOT_READY),
        (504, "deadline_exceeded", Outcome.DEADLINE),
        (500, "inference_failed", Outcome.FAILED),
        (500, "internal_error", Outcome.FAULT),
        (422, "invalid_request", Outcome.WRONG),
    ],
)
def test_every_error_is_told_apart(status: int, code: str, outcome: Outcome) -> None:
    body = json.dumps({"error": {"code": code}}).encode()
    assert judge(REQUEST, status, body, MODELS).outcome is outcome


def test_what_is_no_json_is_no_answer() -> None:
    assert judge(REQUEST, 200, b"<html>", MODELS).outcome is Outcome.WRONG
