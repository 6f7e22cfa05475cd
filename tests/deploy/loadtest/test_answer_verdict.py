from __future__ import annotations

import json
from collections import Counter

import pytest

from deploy.loadtest.answer_verdict import SCORED, UNSCORED, judge
from service.domain import PairStatus
from tests.deploy.loadtest.answers import answer

IDS = ["a", "b"]


def scored(*ads: tuple[str, object]) -> bytes:
    """A body with these statuses and scores, whatever they are."""
    scores = [
        {"id": ad_id, "status": status, "score": score}
        for ad_id, (status, score) in zip(IDS, ads, strict=True)
    ]
    return json.dumps({"scores": scores}).encode()


def test_an_answer_with_every_score_in_time_is_a_success() -> None:
    verdict = judge(200, answer(IDS, ["ok", "ok"]), elapsed_ms=49, patience_ms=50, ad_ids=IDS)
    assert verdict.failure is None
    assert verdict.pairs["good"] == 2
    assert verdict.cached_pairs == 0


def test_a_score_out_of_the_cache_is_as_good() -> None:
    verdict = judge(200, answer(IDS, ["cached", "ok"]), 49, 50, IDS)
    assert verdict.failure is None
    assert verdict.pairs["good"] == 2
    assert verdict.cached_pairs == 1


def test_every_status_that_the_service_gives_is_known() -> None:
    assert set(PairStatus) == {*SCORED, *UNSCORED}


def test_a_partial_answer_is_a_failure_with_some_good_pairs() -> None:
    verdict = judge(200, answer([*IDS, "c"], ["ok", "deadline", "failed"]), 49, 50, [*IDS, "c"])
    assert verdict.failure == "partial: some ads have no score"
    assert +verdict.pairs == Counter({"good": 1, "deadline": 1, "failed": 1})


def test_scores_that_come_too_late_are_worth_nothing() -> None:
    verdict = judge(200, answer(IDS, ["ok", "deadline"]), elapsed_ms=51, patience_ms=50, ad_ids=IDS)
    assert verdict.failure is not None
    assert verdict.failure.startswith("late")
    assert +verdict.pairs == Counter({"late": 1, "deadline": 1})


@pytest.mark.parametrize(
    ("status", "code", "fate"),
    [
        (504, "deadline_exceeded", "deadline"),
        (429, "queue_full", "refused"),
        (429, "deadline_unreachable", "refused"),
        (503, "not_ready", "refused"),
        (500, "inference_failed", "failed"),
        (401, "unauthorized", "failed"),
    ],
)
def test_an_error_is_filed_under_its_status_and_code(status: int, code: str, fate: str) -> None:
    verdict = judge(status, json.dumps({"error": {"code": code}}).encode(), 5, 50, IDS)
    assert verdict.failure == f"{status} {code}"
    assert verdict.pairs == {fate: 2}


@pytest.mark.parametrize("status", [429, 503, 504])
def test_overload_is_only_what_the_service_itself_tells(status: int) -> None:
    verdict = judge(status, b"<html>from a proxy", 5, 50, IDS)
    assert verdict.failure == f"{status} no answer of the service"
    assert verdict.pairs == {"failed": 2}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>",
        b"[]",
        b'{"scores": 3}',
        b'{"scores": [1, 2]}',
        answer(["a"], ["ok"]),
        answer(["b", "a"], ["ok", "ok"]),
        answer(IDS, ["ok", "perhaps"]),
        scored(("ok", None), ("failed", None)),
        scored(("ok", 1.5), ("ok", 0.5)),
        scored(("ok", "0.5"), ("ok", 0.5)),
        scored(("ok", 0.5), ("deadline", 0.5)),
    ],
)
def test_an_answer_that_is_none_is_a_failure(body: bytes) -> None:
    verdict = judge(200, body, 5, 50, IDS)
    assert verdict.failure == "malformed answer"
    assert verdict.pairs == {"failed": 2}


def test_no_answer_at_all_is_a_failure() -> None:
    verdict = judge(0, b"", 5, 50, IDS)
    assert verdict.failure == "0 no answer of the service"
    assert verdict.pairs == {"failed": 2}
