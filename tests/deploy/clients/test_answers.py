"""Callers in other languages and answers that are too long, too slow, or somebody else's."""

from __future__ import annotations

import json

import pytest

from tests.deploy.clients.driver import Caller
from tests.deploy.clients.stand_in_server import Reply, Streams, refused, scored, standing_in
from tests.deploy.clients.test_calls import ADS, FALLBACK_SCORE, MAX_LATE_MS, QUERY, with_scores

DRIP_MS = 300
MAX_BYTES = 65_536 + 1024 * len(ADS)  # and the request's length


@pytest.mark.parametrize("status", [401, 403, 404, 405, 408, 400, 429, 302])
def test_what_is_no_fault_of_the_request_costs_no_ad_its_score(caller: Caller, status: int) -> None:
    reply = refused(status, "unauthorized")
    with standing_in(reply, reply) as server:
        failed = caller.call(server.url, QUERY, ADS)
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (failed.raised, failed.code, failed.http_status) == (True, "unauthorized", status)
    assert (filled.raised, filled.code, filled.http_status) == (False, "unauthorized", status)
    assert [(ad.score, ad.status) for ad in filled.ads] == [(FALLBACK_SCORE, "fallback")] * 2
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "error",
    [
        {"code": "BadGateway", "message": "m", "details": {}},
        {"code": "BadGateway", "message": "m", "details": None},
        {"code": "BadGateway", "message": "m"},
        {"code": "BadGateway", "message": 5, "details": []},
        {"code": 5, "message": "m", "details": []},
        "BadGateway",
        None,
        [],
    ],
)
@pytest.mark.parametrize("status", [422, 502])
def test_an_error_in_another_shape_is_somebody_elses(
    caller: Caller, status: int, error: object
) -> None:
    with standing_in(Reply(status, json.dumps({"error": error}).encode())) as server:
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (filled.raised, filled.code) == (False, f"http_{status}")


@pytest.mark.parametrize("detail", [None, 5, [], {"retry_after_ms": "5"}, {"retry_after_ms": -5}])
def test_a_detail_that_is_not_understood_is_passed_over(caller: Caller, detail: object) -> None:
    error = {"code": "queue_full", "message": "m", "details": [detail, {"retry_after_ms": 7}]}
    with standing_in(Reply(429, json.dumps({"error": error}).encode())) as server:
        filled = caller.call(server.url, QUERY, ADS, fallback=True)
    assert (filled.raised, filled.code, filled.retry_after_ms) == (False, "queue_full", 7)


def test_an_answer_without_end_is_cut_off(caller: Caller) -> None:
    with standing_in(Streams(b" " * 16_384)) as server:
        failed = caller.call(server.url, QUERY, ADS)
        assert server.caller_left.wait(10)
        assert not caller.call(server.url, QUERY, ADS).raised
    assert (failed.raised, failed.code, failed.http_status) == (True, "bad_answer", 200)
    assert failed.elapsed_ms < MAX_LATE_MS
    assert len(server.asked) == 2


@pytest.mark.parametrize(("status", "code"), [(200, "bad_answer"), (502, "bad_answer")])
def test_an_answer_is_bounded_by_what_it_can_need(caller: Caller, status: int, code: str) -> None:
    def padded(asked: dict[str, object], more_bytes: int) -> Reply:
        content = scored(asked).body
        asked_bytes = len(json.dumps(asked, separators=(",", ":")).encode())
        return Reply(status, content.ljust(MAX_BYTES + asked_bytes + more_bytes))

    with standing_in(lambda a: padded(a, 0), lambda a: padded(a, 1)) as server:
        fits = caller.call(server.url, QUERY, ADS)
        too_long = caller.call(server.url, QUERY, ADS)
    assert fits.code == ("" if status == 200 else f"http_{status}")
    assert (too_long.raised, too_long.code, too_long.http_status) == (True, code, status)


def test_an_answer_that_drips_costs_no_more_than_the_deadline(caller: Caller) -> None:
    with standing_in(Streams(b" ", pause_s=0.01)) as server:
        late = caller.call(server.url, QUERY, ADS, timeout_ms=DRIP_MS)
        assert server.caller_left.wait(10)
    assert (late.raised, late.code) == (True, "deadline_exceeded")
    assert DRIP_MS - 2 <= late.elapsed_ms < DRIP_MS + MAX_LATE_MS


@pytest.mark.parametrize(
    "changes", [{"eligible": "yes"}, {"eligible": 1}, {"eligible": None}, {"truncated": "no"}]
)
def test_a_word_about_an_ad_that_is_no_truth_value_is_bad(
    caller: Caller, changes: dict[str, object]
) -> None:
    with standing_in(with_scores({"eligible": True, **changes}, {"eligible": True})) as server:
        failed = caller.call(server.url, QUERY, ADS, min_score=0.5)
    assert (failed.raised, failed.code) == (True, "bad_answer")
