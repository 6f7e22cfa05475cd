from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from service.api.schemas import ScoreRequest
from service.client import Ad, AdResult, AdStatus, BadAnswer
from service.client.ask import Ask
from service.client.wire import (
    SENT_BY_THE_SERVICE,
    AnswerBytes,
    Scored,
    body_with_timeout,
    body_without_timeout,
    error_fields,
    parse_answer,
)
from service.domain import PairStatus
from tests.service.client.stand_ins import ADS, answer_to

ASK = Ask("shoe", tuple(ADS), "r-1")


def parsed(ask: Ask = ASK, **changes: object) -> Scored:
    asked = json.loads(body_with_timeout(body_without_timeout(ask), 50))
    return parse_answer(json.dumps(answer_to(asked, **changes)).encode(), ask)


def test_the_body_is_what_the_service_reads() -> None:
    ask = Ask("red", (Ad("1", "t", "d"), Ad("2", text="ü")), "auction-1", "batch", 0.5)
    body = ScoreRequest.model_validate_json(body_with_timeout(body_without_timeout(ask), 33.5))
    assert (body.query, body.timeout_ms, body.priority) == ("red", 33.5, "batch")
    assert (body.min_score, body.request_id) == (0.5, "auction-1")
    assert body.to_domain("auction-1", 1.0).ads == ask.ads


def test_what_is_not_asked_is_not_sent() -> None:
    fields = json.loads(body_with_timeout(body_without_timeout(ASK), 50))
    assert fields.keys() == {"query", "ads", "timeout_ms", "priority", "request_id"}
    assert fields["ads"][1] == {"id": "B", "text": "blue bag"}


@given(st.floats(1e-6, 1e9))
def test_the_body_has_the_same_length_for_every_timeout(timeout_ms: float) -> None:
    body = body_with_timeout(b'"query":"q"}', timeout_ms)
    assert len(body) == len(body_with_timeout(b'"query":"q"}', 1.0))
    assert json.loads(body)["timeout_ms"] == pytest.approx(timeout_ms, abs=1e-6)
    assert json.loads(body)["timeout_ms"] > 0


@given(st.text(), st.text())
@example("half a surrogate pair \ud800", "\udfff")
def test_any_text_goes_out_as_it_is(query: str, title: str) -> None:
    body = body_with_timeout(body_without_timeout(Ask(query, (Ad("1", title),), "r")), 1)
    fields = json.loads(body.decode("utf-8", "surrogatepass"))
    assert (fields["query"], fields["ads"][0].get("title", "")) == (query, title)


def test_a_number_that_is_none_fails_before_anything_is_sent() -> None:
    with pytest.raises(ValueError, match="JSON"):
        body_without_timeout(Ask("q", tuple(ADS), "r", min_score=float("nan")))


@given(st.lists(st.text(max_size=50), min_size=1, max_size=40))
def test_any_answer_of_the_service_is_small_enough_to_be_read(ids: list[str]) -> None:
    scores = [
        {"id": one, "score": 5e-324, "status": "cached", "eligible": False, "truncated": True}
        for one in ids
    ]
    body = json.dumps(answer_to({"ads": []}, scores=scores), ensure_ascii=False)
    asked = body_without_timeout(Ask("q", tuple(Ad(one) for one in ids), "r"))
    taken = AnswerBytes(len(ids), len(asked), 200)
    for byte in body.encode("utf-8", "surrogatepass"):
        taken.add(bytes([byte]))
    assert taken.whole().decode("utf-8", "surrogatepass") == body


def test_an_answer_may_grow_with_the_ads_and_what_was_asked() -> None:
    for n_ads, asked_bytes in ((0, 0), (20, 0), (0, 5000), (512, 100_000)):
        most_bytes = 65_536 + 1024 * n_ads + asked_bytes
        taken = AnswerBytes(n_ads, asked_bytes, 200)
        taken.add(b" " * most_bytes)
        with pytest.raises(BadAnswer, match=f"more than {most_bytes} bytes"):
            taken.add(b" ")


def test_every_status_of_the_service_is_known_and_no_other() -> None:
    assert set(SENT_BY_THE_SERVICE) == {str(status) for status in PairStatus}


def test_an_answer_becomes_typed_results_in_the_order_of_the_ads() -> None:
    scores = [
        {"id": "A", "score": 0.25, "status": "cached", "eligible": False, "truncated": True},
        {"id": "B", "score": None, "status": "deadline"},
    ]
    scored = parsed(Ask("shoe", tuple(ADS), "r-1", min_score=0.5), scores=scores)
    assert scored.scores == (
        AdResult("A", 0.25, AdStatus.CACHED, eligible=False, truncated=True),
        AdResult("B", None, AdStatus.DEADLINE),
    )
    assert (scored.model.name, scored.model.version) == ("tiny", "abc")
    assert (scored.timing.queue_ms, scored.timing.total_ms) == (1.0, 3.75)


def test_fields_of_a_newer_service_are_ignored() -> None:
    scores = [{"id": ad.id, "score": 1, "status": "ok", "logit": 3, "x": {}} for ad in ADS]
    model = {"name": "n", "version": "v", "revision": 7}
    times = {"encode": 0, "queue": 0, "inference": 0, "total": 0, "network": 9}
    scored = parsed(scores=scores, model=model, timing_ms=times, region="eu")
    assert [one.score for one in scored.scores] == [1.0, 1.0]


GOOD = {"id": "A", "score": 0.5, "status": "ok"}
OTHER = {"id": "B", "score": 0.5, "status": "ok"}


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"scores": [GOOD]}, "scores: 1 for 2 ads"),
        ({"scores": [GOOD, OTHER, OTHER]}, "scores: 3 for 2 ads"),
        ({"scores": [OTHER, GOOD]}, "scores[0].id: is 'B', the ad's is 'A'"),
        ({"scores": [GOOD, {**OTHER, "status": "guessed"}]}, "scores[1].status: 'guessed'"),
        ({"scores": [GOOD, {**OTHER, "status": "fallback"}]}, "scores[1].status: 'fallback'"),
        ({"scores": [GOOD, {**OTHER, "status": None}]}, "scores[1].status: should be str"),
        ({"scores": [GOOD, {**OTHER, "score": None}]}, "scores[1].score: should be a number"),
        ({"scores": [GOOD, {**OTHER, "score": 1.01}]}, "scores[1].score: should be a number"),
        ({"scores": [GOOD, {**OTHER, "score": -0.01}]}, "scores[1].score: should be a number"),
        ({"scores": [GOOD, {**OTHER, "score": float("nan")}]}, "scores[1].score: should be"),
        ({"scores": [GOOD, {**OTHER, "score": True}]}, "scores[1].score: should be a number"),
        ({"scores": [GOOD, {**OTHER, "score": "0.5"}]}, "scores[1].score: should be a number"),
        ({"scores": [GOOD, {**OTHER, "status": "failed"}]}, "though the status is failed"),
        ({"scores": [GOOD, {**OTHER, "truncated": 1}]}, "scores[1].truncated: should be bool"),
        ({"scores": [GOOD, {**OTHER, "eligible": "yes"}]}, "scores[1].eligible: should be bool"),
        ({"scores": [GOOD, "B"]}, "scores[1]: should be dict"),
        ({"scores": {"A": 0.5}}, "scores: should be list"),
        ({"model": {"name": "tiny"}}, "model.version: should be str"),
        ({"timing_ms": {"encode": 10**400}}, "timing_ms.encode: should be a number"),
        ({"request_id": None}, "request_id: should be str"),
        ({"request_id": "r-0"}, "request_id: is 'r-0', the request's is 'r-1'"),
    ],
)
def test_an_answer_that_could_rank_the_wrong_ad_is_an_error(
    changes: dict[str, Any], where: str
) -> None:
    with pytest.raises(BadAnswer) as caught:
        parsed(**changes)
    assert caught.value.code == "bad_answer"
    assert where in caught.value.message


def test_where_eligibility_was_asked_for_a_score_must_have_it() -> None:
    with pytest.raises(BadAnswer, match="eligible: should be bool"):
        parsed(Ask("shoe", tuple(ADS), "r-1", min_score=0.5), scores=[GOOD, OTHER])


@pytest.mark.parametrize("body", [b"", b"<html>", b"\xff", b"[]", b"null", b"[" * 100_000])
def test_what_is_not_a_json_object_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(BadAnswer):
        parse_answer(body, ASK)
    assert error_fields(body) is None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(
    field=st.sampled_from(["request_id", "model", "scores", "timing_ms"]),
    inside=st.sampled_from([None, "id", "score", "status", "eligible", "truncated"]),
    value=json_values,
)
def test_whatever_stands_in_an_answer_it_is_parsed_or_refused(
    field: str, inside: str | None, value: object
) -> None:
    changes = {field: value} if inside is None else {"scores": [GOOD, {**OTHER, inside: value}]}
    try:
        scored = parsed(**changes)
    except BadAnswer:
        return
    assert [one.id for one in scored.scores] == ["A", "B"]
    assert all(one.score is None or 0 <= one.score <= 1 for one in scored.scores)
    assert all((one.score is None) == (one.status not in ("ok", "cached")) for one in scored.scores)
